import type { Log } from "../../shared/log.ts";

export interface Periodic {
  readonly everyMs: number;
  readonly turn: () => Promise<void>;
  readonly log: Log;
  /** The log message for a failed turn of periodic work; the next turn repeats the work. */
  readonly failed: string;
}

/**
 * Runs a turn of periodic work at once, and then one turn each period. If a turn of the work is still running when the next turn is due,
 * `periodically` skips the next turn. The function `close` waits until the running turn of the periodic work has ended.
 */
export function periodically({ everyMs, turn, log, failed }: Periodic): {
  close(): Promise<void>;
} {
  let running: Promise<void> | null = null;
  const take = (): void => {
    running ??= turn()
      .catch((error: unknown) => log.warn(failed, { error }))
      .finally(() => {
        running = null;
      });
  };
  take();
  const timer = setInterval(take, everyMs);
  return {
    close: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
