import type { z } from "zod";
import type { TaskId } from "../ids.ts";
import { grantUser } from "./allocation-grant-user.ts";
import { revokeUser } from "./allocation-revoke-user.ts";
import { checkHardware } from "./check-hardware.ts";
import { drain } from "./drain.ts";
import { gpuChallenge } from "./gpu-challenge.ts";
import { gpuFill } from "./gpu-fill.ts";
import { gpuScrub } from "./gpu-scrub.ts";
import { heartbeatCheck } from "./heartbeat-check.ts";
import { hwSyncReseed } from "./hw-sync-reseed.ts";
import { sampleDisks } from "./sample-disks.ts";
import { signRecord } from "./sign-record.ts";
import { storageCleanup } from "./storage-cleanup.ts";
import type { TASK_TYPES, TaskType } from "./task-types.ts";
import { terminalClose } from "./terminal-close.ts";
import { undrain } from "./undrain.ts";
import { uninstall } from "./uninstall.ts";
import { validateClean } from "./validate-clean.ts";

type Loaded<T extends TaskType> = Awaited<ReturnType<(typeof TASK_TYPES)[T]["load"]>>;

/**
 * `TASKS` has the schemas of all task types, and exists for the hub. The agent loads the schemas of a task type when it gets an order of that type,
 * and never imports `TASKS`.
 */
export const TASKS = {
  [hwSyncReseed.type]: hwSyncReseed,
  [heartbeatCheck.type]: heartbeatCheck,
  [checkHardware.type]: checkHardware,
  [drain.type]: drain,
  [undrain.type]: undrain,
  [uninstall.type]: uninstall,
  [signRecord.type]: signRecord,
  [grantUser.type]: grantUser,
  [revokeUser.type]: revokeUser,
  [terminalClose.type]: terminalClose,
  [validateClean.type]: validateClean,
  [gpuScrub.type]: gpuScrub,
  [gpuFill.type]: gpuFill,
  [gpuChallenge.type]: gpuChallenge,
  [storageCleanup.type]: storageCleanup,
  [sampleDisks.type]: sampleDisks,
} as const satisfies { readonly [T in TaskType]: Loaded<T> };

export type { TaskType };
/** The task types of which the hub can order a plan, which says what the task would do and changes nothing on the host. */
export type PlannedTaskType = {
  [T in TaskType]: (typeof TASKS)[T]["input"]["shape"] extends { readonly plan: unknown } ? T : never;
}[TaskType];
export type TaskInput<T extends TaskType = TaskType> = z.output<(typeof TASKS)[T]["input"]>;
export type TaskResult<T extends TaskType = TaskType> = z.output<(typeof TASKS)[T]["result"]>;
export type TaskProgress<T extends TaskType = TaskType> = z.output<(typeof TASKS)[T]["progress"]>;

/**
 * The errors that the agent may report for any task, in addition to the errors of the task's type. Only the error `not_started` proves that the task
 * did nothing. A task that was interrupted, or whose handler threw, may have changed the host. The hub does not repeat a destructive task that was
 * interrupted or whose handler threw.
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
  /** The `AbortSignal` of a task's handler is aborted when the hub cancels the task or the agent stops. */
  readonly signal: AbortSignal;
  progress(progress: TaskProgress<T>): void;
}

/** A task type without a handler is a compile error. */
export type TaskHandlers = {
  readonly [T in TaskType]: (input: TaskInput<T>, run: TaskRun<T>) => Promise<TaskReply<T>>;
};
