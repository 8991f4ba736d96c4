/** The error that says why a task was aborted. A task's handler undoes its work only after a cancel by the hub, not when the agent stops. */
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
