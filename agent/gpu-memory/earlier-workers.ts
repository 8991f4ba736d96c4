import type { System } from "../system/system.ts";
import { EXCHANGE_FOLDER } from "./exchange.ts";
import { aliveWorker, type EndTiming, endWorker, workerAfter } from "./exchange-reader.ts";

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
