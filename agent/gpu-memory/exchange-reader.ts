import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import type { System } from "../system/system.ts";
import { isLeaderAlive, kernelBootId } from "../system/workers/processes.ts";
import { END_FILE, EXCHANGE_FOLDER, type OverwriteOrder, WORKER_FILE, WorkerProcess } from "./exchange.ts";

/** For each GPU, the exchange between agent and worker process has separate folders for the passes `mark` and `overwrite`. */
export const exchangeFolder = (fillTaskId: string, uuid: string, pass: OverwriteOrder["pass"] = "overwrite"): string =>
  `${EXCHANGE_FOLDER}/${fillTaskId}/${uuid}${pass === "mark" ? "-mark" : ""}`;

export async function readExchange<T>(
  system: System,
  folder: string,
  name: string,
  schema: z.ZodType<T>,
): Promise<T | null> {
  const text = await system.read(`${folder}/${name}`);
  return text === null ? null : schema.parse(JSON.parse(text));
}

export const writeExchange = (system: System, folder: string, name: string, value: unknown): Promise<void> =>
  system.write(`${folder}/${name}`, `${JSON.stringify(value)}\n`, 0o600);

export async function aliveWorker(system: System, folder: string): Promise<WorkerProcess | null> {
  const worker = await readExchange(system, folder, WORKER_FILE, WorkerProcess);
  return worker !== null && isWorkerAlive(worker) ? worker : null;
}

/** Whether the recorded worker process is still alive; a worker process of an earlier boot is not. */
const isWorkerAlive = (worker: WorkerProcess): boolean => worker.boot_id === kernelBootId() && isLeaderAlive(worker);

export interface EndTiming {
  readonly lookEveryMs: number;
  /** How many milliseconds a worker process may take to zero and free its GPU's memory and end. */
  readonly endWithinMs: number;
}

/** Waits until a worker process has ended, and returns the process if it is still alive after `endWithinMs`. */
export async function workerAfter(
  system: System,
  folder: string,
  { lookEveryMs, endWithinMs }: EndTiming,
  signal: AbortSignal,
): Promise<WorkerProcess | null> {
  const until = performance.now() + endWithinMs;
  let worker = await aliveWorker(system, folder);
  while (worker !== null && performance.now() < until) {
    signal.throwIfAborted();
    await sleep(lookEveryMs);
    worker = await aliveWorker(system, folder);
  }
  return worker;
}

export const endWorker = (system: System, folder: string): Promise<void> => writeExchange(system, folder, END_FILE, {});
