import { age, col, SITE, wide } from "./noun.ts";

/** The columns of every list of operations: how far an operation is, what it waits for, and who asked for it. */
export const PROGRESS_COLUMNS = [
  col("STATUS", "status"),
  col("STAGE", "current_stage"),
  col("FAILURE", "failure_class"),
  SITE,
  age("REQUESTED", "requested_at"),
  col("WAITING FOR", "waiting_for"),
  wide("ATTEMPT", "current_attempt"),
  wide("DEADLINE", "stage_deadline"),
  wide("VERB", "next_verb"),
  wide("BY", "requested_by"),
  wide("BATCH", "batch_id"),
] as const;
