import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { isWorkerAlive } from "../system/gpu-memory/exchange-files.ts";
import type { System } from "../system/system.ts";
import { END_FILE, EXCHANGE_FOLDER, type OverwriteOrder, WORKER_FILE, WorkerProcess } from "./exchange.ts";

/** The host's path of the folder in which the agent and the worker of a GPU exchange files. Each pass over a GPU has its own folder. */
export const exchangeFolder = (fillTaskId: string, uuid: string, pass: OverwriteOrder["pass"] = "overwrite"): string =>
  `${EXCHANGE_FOLDER}/${fillTaskId}/${uuid}${pass === "mark" ? "-mark" : ""}`;

/** Reads a file of an exchange, or null if the worker has not written it. */
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

/** The process that holds the memory of a GPU, or null if no process of this exchange is alive. */
export async function aliveWorker(system: System, folder: string): Promise<WorkerProcess | null> {
  const worker = await readExchange(system, folder, WORKER_FILE, WorkerProcess);
  return worker !== null && isWorkerAlive(worker) ? worker : null;
}

export interface EndTiming {
  readonly lookEveryMs: number;
  /** How long a worker may take to zero and free the memory of its GPU, and to end. */
  readonly endWithinMs: number;
}

/** Waits for the end of a worker. Returns the worker's process if the process is still there after the time. */
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

/** Tells a worker to zero and free its memory, and to end. */
export const endWorker = (system: System, folder: string): Promise<void> => writeExchange(system, folder, END_FILE, {});
