import type { System } from "../system/system.ts";
import { EXCHANGE_FOLDER } from "./exchange.ts";
import { aliveWorker, type EndTiming, endWorker, workerAfter } from "./exchange-reader.ts";

/**
 * Ends the worker processes that earlier tasks left behind, because each of them may hold GPU memory. Returns a worker process of an earlier task
 * that does not end, or null if all have ended. When all worker processes of an earlier task have ended, the agent removes the task's files.
 */
export async function endEarlierWorkers(
  system: System,
  taskId: string,
  timing: EndTiming,
  signal: AbortSignal,
): Promise<{ readonly taskId: string; readonly pid: number } | null> {
  const earlier = (await system.list(EXCHANGE_FOLDER)).filter((name) => name !== taskId);
  for (const task of earlier) {
    const folders = (await system.list(`${EXCHANGE_FOLDER}/${task}`)).map(
      (name) => `${EXCHANGE_FOLDER}/${task}/${name}`,
    );
    for (const folder of folders) if ((await aliveWorker(system, folder)) !== null) await endWorker(system, folder);
    for (const folder of folders) {
      const worker = await workerAfter(system, folder, timing, signal);
      if (worker !== null) return { taskId: task, pid: worker.pid };
    }
    await system.removeTree(`${EXCHANGE_FOLDER}/${task}`);
  }
  return null;
}
