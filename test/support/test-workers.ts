import { join } from "node:path";
import type { z } from "zod";
import type { Log } from "../../agent/log.ts";
import { toolsOf } from "../../agent/system/exec.ts";
import type { WorkProgress } from "../../agent/system/workers/define-work.ts";
import { launcherFor } from "../../agent/system/workers/launch.ts";
import { type WorkEnd, Workers } from "../../agent/system/workers/workers.ts";
import { isCancelledByHub } from "../../agent/tasks/cancelled.ts";
import { TEST_WORK } from "./test-work.ts";

const TIMING = { lookEveryMs: 10, repeatProgressMs: 60_000, startWithinMs: 30_000, killedWithinMs: 10_000 };
/**
 * The command that starts the program of a worker process in tests. Node.js runs the TypeScript file directly, as it runs the agent in a checkout.
 */
export const TEST_PROGRAM = [process.execPath, join(import.meta.dirname, "test-worker.ts")];

/** Runs the work of `test-work.ts` in worker processes, as on a host without systemd. */
export const workersAt = (folder: string, log: Log, program: readonly string[] = TEST_PROGRAM): Workers =>
  new Workers(join(folder, "work"), folder, launcherFor(folder, toolsOf(folder), program), log, TIMING);

export const performTestWork = (
  workers: Workers,
  taskId: string,
  input: z.input<typeof TEST_WORK.input>,
  more: {
    deadlineSeconds?: number;
    firstProgressSeconds?: number;
    signal?: AbortSignal;
    progress?: (told: WorkProgress) => void;
  } = {},
): Promise<WorkEnd<z.output<typeof TEST_WORK.result>>> =>
  workers.perform({
    taskId,
    part: "one",
    work: TEST_WORK,
    input,
    deadlineSeconds: more.deadlineSeconds ?? 600,
    ...(more.firstProgressSeconds === undefined ? {} : { firstProgressSeconds: more.firstProgressSeconds }),
    signal: more.signal ?? new AbortController().signal,
    endsWith: isCancelledByHub,
    progress: more.progress ?? (() => undefined),
  });
