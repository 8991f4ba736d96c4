import { z } from "zod";
import { Timestamp } from "./values.ts";

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

/** The columns of a node's lifecycle as CSV, in the order of the list, are the fields of an entry in JSON. */
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
 * The time of a lifecycle entry about an operation, allocation or task is its beginning; its status is the present status. A lifecycle entry never
 * contains the input or result of a task, because these may hold personal data such as SSH keys.
 */
export const LifecycleEntry = z.strictObject({
  at: Timestamp,
  kind: z.enum(LIFECYCLE_KINDS),
  id: z.string(),
  /** The onboarding or decommission to which the lifecycle entry belongs. */
  operation_id: z.string().nullable(),
  /** `subject` is a mode, stage, task type, event type, tenant or source, according to the kind of the lifecycle entry. */
  what: z.string(),
  status: z.string().nullable(),
  by: z.string().nullable(),
  ended_at: Timestamp.nullable(),
  message: z.string().nullable(),
});
export type LifecycleEntry = z.output<typeof LifecycleEntry>;
