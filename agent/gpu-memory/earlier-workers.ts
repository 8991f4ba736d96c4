import { setTimeout as sleep } from "node:timers/promises";
import type { System } from "../system/system.ts";
import { EXCHANGE_FOLDER } from "./exchange.ts";
import { aliveWorker, endWorker } from "./exchange-reader.ts";

export interface EndTiming {
  readonly lookEveryMs: number;
  /** How long a worker may take to zero and free the memory of its GPU. */
  readonly endWithinMs: number;
}

/**
 * Ends the workers of earlier tasks, for example of a task whose hub or agent was killed, because they hold the memory. Returns the process that does
 * not end, with its task, or null. The files of workers that have ended are removed.
 */
export async function endEarlierWorkers(
  system: System,
  taskId: string,
  timing: EndTiming,
  signal: AbortSignal,
): Promise<{ readonly taskId: string; readonly pid: number } | null> {
  const earlier = (await system.list(EXCHANGE_FOLDER)).filter((name) => name !== taskId);
  const until = performance.now() + timing.endWithinMs;
  for (const task of earlier) {
    const folders = (await system.list(`${EXCHANGE_FOLDER}/${task}`)).map(
      (name) => `${EXCHANGE_FOLDER}/${task}/${name}`,
    );
    for (const folder of folders) if ((await aliveWorker(system, folder)) !== null) await endWorker(system, folder);
    for (const folder of folders) {
      let worker = await aliveWorker(system, folder);
      while (worker !== null && performance.now() < until) {
        signal.throwIfAborted();
        await sleep(timing.lookEveryMs);
        worker = await aliveWorker(system, folder);
      }
      if (worker !== null) return { taskId: task, pid: worker.pid };
    }
    await system.removeTree(`${EXCHANGE_FOLDER}/${task}`);
  }
  return null;
}
