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

/** The states of a task that the agent has not ended. */
export const UNFINISHED_TASK_STATES = [
  "queued",
  "offered",
  "running",
  "cancelling",
] as const satisfies readonly (typeof TASK_STATES)[number][];

export const isUnfinished = (state: (typeof TASK_STATES)[number]): boolean =>
  UNFINISHED_TASK_STATES.some((one) => one === state);
