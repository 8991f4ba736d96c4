import { z } from "zod";
import { WORKFLOW_STATUSES } from "./workflow-status.ts";

/**
 * The domain events of operations (onboardings and decommissions) that are under way. The begin and the end of an operation are reported by the
 * events `node.onboarding.*` and `node.decommission.*`.
 */
export const OPERATION_EVENTS = {
  "operation.progressed": {
    subject: "{kind}s/{operation_id}",
    meaning:
      "A stage of an operation began, ended or waits for something else, or the agent reported progress. Kept for a day, and no webhook gets it by the pattern `*`.",
    data: z.strictObject({
      operation_id: z.string(),
      batch_id: z.string().nullable(),
      site_id: z.string().nullable(),
      node_id: z.string().optional(),
      hostname: z.string().optional(),
      status: z.enum(WORKFLOW_STATUSES),
      stage: z.string(),
      attempt: z.int(),
      wait_reason: z.string().nullable(),
    }),
  },
} as const;

const batch = { batch_id: z.string(), kind: z.enum(["onboarding", "decommission"]), site_id: z.string() };

/** The events of batches of operations. */
export const BATCH_EVENTS = {
  "batch.paused": {
    subject: "{kind}-batches/{batch_id}",
    meaning:
      "No further operation of the batch begins until a person resumes the batch; `by` is null if the failures of the batch have paused it.",
    data: z.strictObject({ ...batch, by: z.string().nullable(), reason: z.string() }),
  },
  "batch.resumed": {
    subject: "{kind}-batches/{batch_id}",
    meaning: "A person has resumed a paused batch, so its waiting operations begin again.",
    data: z.strictObject({ ...batch, by: z.string(), reason: z.string() }),
  },
} as const;

/**
 * The event types that are so frequent that the pattern `*` of a webhook does not select them. A webhook gets the frequent events `operation.*` only
 * by a pattern that is longer than `*`.
 */
export const FREQUENT: ReadonlySet<string> = new Set(Object.keys(OPERATION_EVENTS));
