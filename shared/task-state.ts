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
