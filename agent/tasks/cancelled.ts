/** Why a task's signal was aborted. A handler undoes what it has begun only where the hub has cancelled the task, not where the agent just restarts. */
export class TaskCancelled extends Error {
  override readonly name = "TaskCancelled";
  readonly why: "cancelled" | "interrupted" | "superseded";
  constructor(why: TaskCancelled["why"], message: string) {
    super(message);
    this.why = why;
  }
}

export const isCancelledByHub = (signal: AbortSignal): boolean =>
  signal.aborted && signal.reason instanceof TaskCancelled && signal.reason.why === "cancelled";
