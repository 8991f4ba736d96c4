import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Json } from "../../../shared/json.ts";
import type { Log } from "../../log.ts";
import { listFolder } from "../files.ts";
import type { WorkKind, WorkProgress } from "./define-work.ts";
import { type Launcher, lastLines } from "./launch.ts";
import {
  aliveInSession,
  bootSeconds,
  isLeaderAlive,
  kernelBootId,
  readProcess,
  sendSignal,
  waitChannel,
} from "./processes.ts";
import {
  createWorkFile,
  KILL_AFTER_MS,
  ORDER_FILE,
  PROGRESS_FILE,
  RESULT_FILE,
  readWorkFile,
  STARTED_FILE,
  type WorkOrder,
  WorkProgressFile,
  WorkResult,
  WorkStarted,
  writeWorkFile,
} from "./work-files.ts";

export const WORK_FAILURES = [
  "work_failed",
  /** The work failed because no worker process began the work. */
  "not_started",
  /** The worker process ended without a result, for example by SIGKILL or at its memory limit. */
  "worker_lost",
  "deadline_passed",
  /**
   * A process of the work has survived SIGKILL, because it is blocked in a driver or a disk. Only a reboot ends a process that is blocked in a driver
   * or a disk.
   */
  "driver_wedged",
  /** The agent refused work that may block in a driver, because this host has no systemd that would enforce the work's deadline. */
  "systemd_missing",
] as const;
export type WorkFailure = (typeof WORK_FAILURES)[number];

export type WorkEnd<R> =
  | { readonly ok: true; readonly result: R }
  | {
      readonly ok: false;
      readonly code: WorkFailure;
      readonly message: string;
      readonly progress: WorkProgress | null;
    };

export interface WorkersTiming {
  readonly lookEveryMs: number;
  /** How often the agent repeats a worker process's progress to the hub, which renews the task's lease. */
  readonly repeatProgressMs: number;
  readonly startWithinMs: number;
  /** How many milliseconds after SIGKILL a process that is still alive counts as blocked in the kernel. */
  readonly killedWithinMs: number;
}
const TIMING: WorkersTiming = {
  lookEveryMs: 500,
  repeatProgressMs: 60_000,
  startWithinMs: 60_000,
  killedWithinMs: 10_000,
};

const TaskFile = z.strictObject({ boot_id: z.string(), input: Json });
const TASK_FILE = "task.json";
const PART = /^[a-z0-9][a-z0-9-]{0,40}$/;

export interface PerformOptions<I, R> {
  readonly taskId: string;
  /** The name of the work of one worker process, which is unique within the task. */
  readonly part: string;
  readonly work: WorkKind<z.ZodType<I>, z.ZodType<R>>;
  readonly input: I;
  readonly deadlineSeconds: number;
  /** How many seconds a worker process may take until its first report of progress; the default is `deadlineSeconds`. */
  readonly firstProgressSeconds?: number;
  readonly signal: AbortSignal;
  /**
   * Whether an abort of `signal` also ends the worker process. If `endsWith` returns false, for example because only the agent stops, the worker
   * process continues.
   */
  readonly endsWith: (signal: AbortSignal) => boolean;
  readonly progress: (progress: WorkProgress) => void;
}

/**
 * Agent and worker process share only files (decision C6). A task may have several pieces of work, each for one worker process, and the agent starts
 * each piece at most once. A restarted agent finds running work or the result of ended work, and does not start that work a second time.
 */
export class Workers {
  readonly #folder: string;
  readonly #root: string;
  readonly #launcher: Launcher;
  readonly #log: Log;
  readonly #timing: WorkersTiming;
  constructor(folder: string, root: string, launcher: Launcher, log: Log, timing: WorkersTiming = TIMING) {
    this.#folder = folder;
    this.#root = root;
    this.#launcher = launcher;
    this.#log = log;
    this.#timing = timing;
  }

  /** Stores the input of a task whose worker processes outlive the agent, so that a restarted agent can continue the task. */
  begin(taskId: string, input: Json): void {
    const folder = this.#taskFolder(taskId);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    createWorkFile(folder, TASK_FILE, { boot_id: kernelBootId(), input });
  }

  /** Returns the input of a task whose worker processes began after the host's last boot and so may still run; null for every other task. */
  inputToContinue(taskId: string): Json | null {
    const file = readWorkFile(this.#taskFolder(taskId), TASK_FILE, TaskFile);
    return file === null || file.boot_id !== kernelBootId() ? null : file.input;
  }

  /** Removes the files of a task's work, unless one of its worker processes is alive. */
  forget(taskId: string): void {
    const folder = this.#taskFolder(taskId);
    if (this.#startedIn(folder).some((started) => this.#isAlive(started))) return;
    rmSync(folder, { recursive: true, force: true });
  }

  /** Removes, at the agent's start, the files of all tasks outside `keep`. */
  async forgetAllBut(keep: ReadonlySet<string>): Promise<void> {
    for (const taskId of await listFolder(this.#folder)) if (!keep.has(taskId)) this.forget(taskId);
  }

  /** Starts a worker process for a piece of a task's work, or finds the worker process that already runs, and follows the work to its end. */
  async perform<I, R>(options: PerformOptions<I, R>): Promise<WorkEnd<R>> {
    const { taskId, part, work, input } = options;
    if (!PART.test(part)) throw new Error(`${part} cannot name a part of a task.`);
    const folder = join(this.#taskFolder(taskId), part);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (work.mayBlock && !this.#launcher.hasSystemd)
      return failed("systemd_missing", `${work.kind} may block in a driver, and no systemd runs on this host.`, null);
    const order: WorkOrder = {
      format: "muster-work/1",
      kind: work.kind,
      root: this.#root,
      input: Json.parse(work.input.parse(input)),
      deadline_seconds: options.deadlineSeconds,
    };
    if (
      readWorkFile(folder, RESULT_FILE, WorkResult) === null &&
      readWorkFile(folder, STARTED_FILE, WorkStarted) === null
    )
      await this.#start(folder, order, `${taskId}-${part}`, work.memoryMax);
    return this.#follow(folder, order, options);
  }

  async #start(folder: string, order: WorkOrder, name: string, memoryMax: string): Promise<void> {
    writeWorkFile(folder, ORDER_FILE, order);
    this.#log.info("work started outside the agent", { kind: order.kind, name });
    await this.#launcher.launch({ folder, name, deadlineSeconds: order.deadline_seconds, memoryMax });
  }

  async #follow<I, R>(folder: string, order: WorkOrder, options: PerformOptions<I, R>): Promise<WorkEnd<R>> {
    const began = performance.now();
    const told = new ToldProgress(folder, this.#timing.repeatProgressMs, options.progress);
    for (;;) {
      const started = readWorkFile(folder, STARTED_FILE, WorkStarted);
      // A worker process writes its result before it ends, so the agent looks for the process first and then for the result.
      const isAlive = started !== null && this.#isAlive(started);
      const result = readWorkFile(folder, RESULT_FILE, WorkResult);
      if (result !== null) return endOf(result, options.work, told.last);
      if (started === null && performance.now() - began > this.#timing.startWithinMs && preventStart(folder))
        return failed("not_started", `No process began the work. ${lastLines(folder)}`, null);
      if (started !== null && !isAlive) return this.#lost(folder, order, started, told.last);
      if (started !== null && secondsSince(started) * 1000 > order.deadline_seconds * 1000 + 2 * KILL_AFTER_MS)
        return this.#kill(started, told.last);
      told.look();
      const mostSilent = options.firstProgressSeconds ?? order.deadline_seconds;
      if (started !== null && told.last === null && secondsSince(started) > mostSilent)
        return this.#kill(started, null, `The work did not begin within ${mostSilent} s and was ended.`);
      if (options.signal.aborted) {
        if (options.endsWith(options.signal)) await this.#stop(folder);
        throw options.signal.reason;
      }
      await sleep(this.#timing.lookEveryMs, undefined, { signal: options.signal }).catch(() => undefined);
    }
  }

  async #lost(
    folder: string,
    order: WorkOrder,
    started: WorkStarted,
    progress: WorkProgress | null,
  ): Promise<WorkEnd<never>> {
    const isLate = started.boot_id === kernelBootId() && longestSince(started) >= order.deadline_seconds;
    if (started.boot_id === kernelBootId()) {
      const wedged = await this.#kill(started, progress);
      if (!wedged.ok && wedged.code === "driver_wedged") return wedged;
    }
    return isLate
      ? failed("deadline_passed", `The work did not end within ${order.deadline_seconds} s and was ended.`, progress)
      : failed("worker_lost", `The work's process ended without a result. ${lastLines(folder)}`, progress);
  }

  /**
   * Sends SIGKILL to the worker process and to all living processes that it started. `#kill` abandons a process that survives SIGKILL, and names the
   * process in the failure.
   */
  async #kill(
    started: WorkStarted,
    progress: WorkProgress | null,
    why = "The work did not end in time and was ended.",
  ): Promise<WorkEnd<never>> {
    for (const one of aliveInSession(started)) sendSignal(one.pid, "SIGKILL");
    const until = performance.now() + this.#timing.killedWithinMs;
    let left = aliveInSession(started);
    while (left.length > 0 && performance.now() < until) {
      await sleep(this.#timing.lookEveryMs);
      left = aliveInSession(started);
    }
    const [blocked] = left;
    if (blocked === undefined) return failed("deadline_passed", why, progress);
    const where = waitChannel(blocked.pid);
    return failed(
      "driver_wedged",
      `Process ${blocked.pid} does not end after SIGKILL (state ${blocked.state}${where === "" ? "" : `, in ${where}`}). Reboot the host.`,
      progress,
    );
  }

  async #stop(folder: string): Promise<void> {
    if (preventStart(folder)) return;
    const started = readWorkFile(folder, STARTED_FILE, WorkStarted);
    if (started === null) return;
    if (isLeaderAlive(started)) sendSignal(started.pid, "SIGTERM");
    const until = performance.now() + KILL_AFTER_MS;
    while (this.#isAlive(started) && performance.now() < until) await sleep(this.#timing.lookEveryMs);
    const end = await this.#kill(started, null);
    if (!end.ok && end.code === "driver_wedged")
      this.#log.error("a cancelled work does not end", { folder, reason: end.message });
  }

  #isAlive(started: WorkStarted): boolean {
    return started.boot_id === kernelBootId() && isLeaderAlive(started);
  }

  #startedIn(folder: string): WorkStarted[] {
    try {
      const parts = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
      return parts.flatMap(({ name }) => readWorkFile(join(folder, name), STARTED_FILE, WorkStarted) ?? []);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
      throw error;
    }
  }

  #taskFolder = (taskId: string): string => join(this.#folder, taskId);
}

/** Reports a worker process's progress to the hub after each change, and repeats an unchanged progress every `repeatMs`. */
class ToldProgress {
  readonly #folder: string;
  readonly #repeatMs: number;
  readonly #tell: (progress: WorkProgress) => void;
  last: WorkProgress | null = null;
  #toldAt = Number.NEGATIVE_INFINITY;
  constructor(folder: string, repeatMs: number, tell: (progress: WorkProgress) => void) {
    this.#folder = folder;
    this.#repeatMs = repeatMs;
    this.#tell = tell;
  }
  look(): void {
    const now = readWorkFile(this.#folder, PROGRESS_FILE, WorkProgressFile);
    if (now === null) return;
    const isNew = JSON.stringify(now) !== JSON.stringify(this.last);
    if (!isNew && performance.now() - this.#toldAt < this.#repeatMs) return;
    this.last = now;
    this.#toldAt = performance.now();
    this.#tell(now);
  }
}

/**
 * Creates `started.json` in place of a worker process, so that no worker process can begin the work later. Returns false if a worker process has
 * already begun the work.
 */
function preventStart(folder: string): boolean {
  const start_ticks = readProcess(process.pid)?.startTicks ?? "0";
  const started = { pid: process.pid, start_ticks, boot_id: kernelBootId(), uptime_seconds: bootSeconds() };
  return createWorkFile(folder, STARTED_FILE, started satisfies WorkStarted);
}

/** The kernel counts the start of a process in hundredths of a second since boot (USER_HZ), and rounds down. */
const TICKS_PER_SECOND = 100;
const ROUNDING_SECONDS = 0.02;
/**
 * The deadline of a worker process counts from the process's start, some time before the process has written `started.json`. In a container, Linux
 * may count the uptime from the container's start, and then the agent uses only the uptime in `started.json`.
 */
const longestSince = (started: WorkStarted): number =>
  Math.max(secondsSince(started), bootSeconds() - Number(started.start_ticks) / TICKS_PER_SECOND + ROUNDING_SECONDS);
const secondsSince = (started: WorkStarted): number => bootSeconds() - started.uptime_seconds;

const failed = (code: WorkFailure, message: string, progress: WorkProgress | null): WorkEnd<never> => ({
  ok: false,
  code,
  message: message.trim(),
  progress,
});

function endOf<R>(
  result: WorkResult,
  work: WorkKind<z.ZodType, z.ZodType<R>>,
  progress: WorkProgress | null,
): WorkEnd<R> {
  if (!result.ok) return failed("work_failed", result.message, progress);
  const parsed = work.result.safeParse(result.result);
  return parsed.success
    ? { ok: true, result: parsed.data }
    : failed("work_failed", "The work's result does not have the form that this agent expects.", progress);
}
