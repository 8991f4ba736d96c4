import type { z } from "zod";
import type { TaskId } from "../ids.ts";
import { drain } from "./drain.ts";
import { heartbeatCheck } from "./heartbeat-check.ts";
import { hwSyncReseed } from "./hw-sync-reseed.ts";
import { undrain } from "./undrain.ts";
import { uninstall } from "./uninstall.ts";

/** The catalogue: the only list of task types. There is no shell task and no remote script, by design (lifecycle 2.4). */
export const TASKS = {
  [hwSyncReseed.type]: hwSyncReseed,
  [heartbeatCheck.type]: heartbeatCheck,
  [drain.type]: drain,
  [undrain.type]: undrain,
  [uninstall.type]: uninstall,
} as const;

export type TaskType = keyof typeof TASKS;
export type TaskInput<T extends TaskType = TaskType> = z.output<(typeof TASKS)[T]["input"]>;
export type TaskResult<T extends TaskType = TaskType> = z.output<(typeof TASKS)[T]["result"]>;
export type TaskProgress<T extends TaskType = TaskType> = z.output<(typeof TASKS)[T]["progress"]>;

/**
 * Errors that the runner itself reports for any task, beside those of its spec. Only of `not_started` is it known that nothing was done: a task that was
 * interrupted, or whose handler broke in the middle, may have acted, so a destructive one is never run again for them.
 */
export const RUNNER_ERRORS = {
  not_started: "retry",
  interrupted: "retry_unless_destructive",
  handler_crashed: "retry_unless_destructive",
  cancelled: "fail",
} as const;
export type RunnerError = keyof typeof RUNNER_ERRORS;

export type TaskReply<T extends TaskType = TaskType> =
  | { readonly ok: true; readonly result: TaskResult<T> }
  | {
      readonly ok: false;
      readonly error: (keyof (typeof TASKS)[T]["errors"] & string) | RunnerError;
      readonly message: string;
    };

export interface TaskRun<T extends TaskType> {
  readonly taskId: TaskId;
  /** Aborted when the hub cancels the task or the agent stops. */
  readonly signal: AbortSignal;
  progress(progress: TaskProgress<T>): void;
}

/** One handler per type: a missing one does not compile. */
export type TaskHandlers = {
  readonly [T in TaskType]: (input: TaskInput<T>, run: TaskRun<T>) => Promise<TaskReply<T>>;
};

export const isTaskType = (type: string): type is TaskType => Object.hasOwn(TASKS, type);
