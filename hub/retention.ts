import { removeOutdated } from "./db/queries/retention.ts";
import type { Db } from "./db/tx.ts";
import type { Log } from "./log.ts";

const EVERY_MS = 3_600_000;

/** Keeps the tables that only grow from growing for ever; once at the start, then each hour. */
export function startRetention(options: { db: Db; log: Log; days: number }): { close(): Promise<void> } {
  const { db, log, days } = options;
  let running: Promise<void> = Promise.resolve();
  const sweep = (): void => {
    running = running.then(async () => {
      try {
        const removed = await removeOutdated(db, days);
        if (Object.values(removed).some((rows) => rows > 0)) log.info("outdated records removed", { removed, days });
      } catch (error) {
        log.warn("outdated records could not be removed", { error });
      }
    });
  };
  sweep();
  const timer = setInterval(sweep, EVERY_MS);
  return {
    close: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
