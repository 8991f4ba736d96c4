import { z } from "zod";
import { Timestamp } from "./values.ts";

/** What the entries of a node's lifecycle are about (lifecycle 5.7). */
export const LIFECYCLE_KINDS = [
  "onboarding",
  "decommission",
  "stage",
  "allocation",
  "task",
  "record",
  "event",
  "override",
] as const;

/** The columns of a node's lifecycle as CSV, in this order. They are the fields of an entry in JSON. */
export const LIFECYCLE_COLUMNS = [
  "at",
  "kind",
  "id",
  "operation_id",
  "what",
  "status",
  "by",
  "ended_at",
  "message",
] as const;

/**
 * One entry of a node's lifecycle. An operation, allocation or task has its beginning as its time and its present status. An entry never has the input
 * or result of a task, because they may hold personal data such as SSH keys.
 */
export const LifecycleEntry = z.strictObject({
  at: Timestamp,
  kind: z.enum(LIFECYCLE_KINDS),
  id: z.string(),
  /** The onboarding or decommission to which the entry belongs. */
  operation_id: z.string().nullable(),
  /** The mode, stage, task type, event type, tenant or source of the entry, according to its kind. */
  what: z.string(),
  status: z.string().nullable(),
  by: z.string().nullable(),
  ended_at: Timestamp.nullable(),
  message: z.string().nullable(),
});
export type LifecycleEntry = z.output<typeof LifecycleEntry>;
