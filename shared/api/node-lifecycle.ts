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

/** The columns of a node's lifecycle in CSV, in their order; they are the fields of a lifecycle entry in JSON. */
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
 * In a lifecycle entry about an operation, allocation or task, the time is when that work began, and the status is its present one. A lifecycle entry
 * never contains the input or result of a task, because these may hold personal data such as SSH keys.
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
