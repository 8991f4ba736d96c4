/** The states of a task, from its queueing to its end. */
export const TASK_STATES = [
  "queued",
  "offered",
  "running",
  "cancelling",
  "succeeded",
  "failed",
  "cancelled",
  "expired",
] as const;
