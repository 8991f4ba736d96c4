import { spawn } from "node:child_process";
import type { z } from "zod";
import { Json } from "../../../shared/json.ts";
import { withoutCredentials } from "../../../shared/without-credentials.ts";
import { messageOf } from "../../message-of.ts";
import type { Performer, WorkProgress, WorkRun } from "./define-work.ts";
import { aliveInSession, bootSeconds, kernelBootId, readProcess, sendSignal } from "./processes.ts";
import {
  createWorkFile,
  KILL_AFTER_MS,
  ORDER_FILE,
  PROGRESS_FILE,
  RESULT_FILE,
  readWorkFile,
  STARTED_FILE,
  WORKER_ARGUMENT,
  WorkOrder,
  type WorkResult,
  WorkStarted,
  writeWorkFile,
} from "./work-files.ts";

const PROGRESS_EVERY_MS = 1_000;
const GIVE_UP_AFTER_KILL_MS = 5_000;

class WorkStopped extends Error {
  override readonly name = "WorkStopped";
}

export async function runWorkerProgram(args: readonly string[], performers: readonly Performer[]): Promise<number> {
  const [mode, folder] = args;
  if (folder === undefined || (mode !== "perform" && mode !== "supervise"))
    throw new Error("A worker needs the arguments `perform <folder>` or `supervise <folder>`.");
  return mode === "perform" ? perform(folder, performers) : supervise(folder);
}

/**
 * Performs the work that the file `order.json` in `folder` orders, unless another worker process has created the file `started.json`. The worker
 * process writes its result or error to `result.json`.
 */
async function perform(folder: string, performers: readonly Performer[]): Promise<number> {
  const order = readWorkFile(folder, ORDER_FILE, WorkOrder);
  if (order === null) throw new Error(`${folder} has no readable order.`);
  const own = readProcess(process.pid);
  if (own === null) throw new Error("Linux does not list this process in /proc.");
  const started: z.output<typeof WorkStarted> = {
    pid: process.pid,
    start_ticks: own.startTicks,
    boot_id: kernelBootId(),
    uptime_seconds: bootSeconds(),
  };
  if (!createWorkFile(folder, STARTED_FILE, started)) return 0;
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort(new WorkStopped("The agent asked the worker to stop.")));
  const run = runOf(folder, order.root, stop.signal);
  const result = await resultOf(order, run, performers);
  writeWorkFile(folder, RESULT_FILE, result);
  return result.ok ? 0 : 1;
}

async function resultOf(order: WorkOrder, run: WorkRun, performers: readonly Performer[]): Promise<WorkResult> {
  const found = performers.find(({ work }) => work.kind === order.kind);
  if (found === undefined) return { ok: false, stopped: false, message: `This agent has no work ${order.kind}.` };
  try {
    const result = found.work.result.parse(await found.perform(order.input, run));
    return { ok: true, result: Json.parse(result) };
  } catch (error) {
    const message = messageOf(error);
    return { ok: false, stopped: run.signal.aborted, message: withoutCredentials(message).slice(0, 2_000) };
  }
}

function runOf(folder: string, root: string, signal: AbortSignal): WorkRun {
  let writtenAt = Number.NEGATIVE_INFINITY;
  return {
    root,
    signal,
    throwIfStopped: () => signal.throwIfAborted(),
    progress: ({ step, done, bytes }: WorkProgress) => {
      if (performance.now() - writtenAt < PROGRESS_EVERY_MS) return;
      writtenAt = performance.now();
      writeWorkFile(folder, PROGRESS_FILE, { step, done, bytes });
    },
  };
}

/**
 * Runs the supervisor of a worker process on a host without systemd. The supervisor starts the worker process in a separate session, and ends all
 * processes of this session at the deadline of the work. The supervisor abandons a process that survives SIGKILL, because a wait for its end might
 * last for ever.
 */
async function supervise(folder: string): Promise<number> {
  const order = readWorkFile(folder, ORDER_FILE, WorkOrder);
  if (order === null) throw new Error(`${folder} has no readable order.`);
  const [script = ""] = process.argv.slice(1);
  const child = spawn(process.execPath, [...process.execArgv, script, WORKER_ARGUMENT, "perform", folder], {
    detached: true,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const ended = new Promise<number>((resolve) => {
    child.once("exit", (code) => resolve(code ?? 1));
    child.once("error", () => resolve(1));
  });
  const timers = [
    setTimeout(() => killSession(folder, child.pid, "SIGTERM"), order.deadline_seconds * 1000),
    setTimeout(() => killSession(folder, child.pid, "SIGKILL"), order.deadline_seconds * 1000 + KILL_AFTER_MS),
  ];
  const wedged = new Promise<number>((resolve) => {
    timers.push(setTimeout(() => resolve(1), order.deadline_seconds * 1000 + KILL_AFTER_MS + GIVE_UP_AFTER_KILL_MS));
  });
  const status = await Promise.race([ended, wedged]);
  for (const timer of timers) clearTimeout(timer);
  return status;
}

function killSession(folder: string, pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
  const started = readWorkFile(folder, STARTED_FILE, WorkStarted);
  if (started === null || started.pid !== pid) return;
  for (const one of aliveInSession(started)) sendSignal(one.pid, signal);
}
