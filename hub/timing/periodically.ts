import type { Log } from "../log.ts";

export interface Periodic {
  readonly everyMs: number;
  readonly turn: () => Promise<void>;
  readonly log: Log;
  /** What is logged when a turn fails; the next one tries again. */
  readonly failed: string;
}

/** Takes a turn at once, then one each period; one that falls due while another still runs is left out. `close` waits for the turn that runs. */
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
