import type { Log } from "../../shared/log.ts";
import type { WakeSignal } from "./wake-signal.ts";

export interface DueWork {
  readonly due: WakeSignal;
  /** The longest time in milliseconds between two calls of `turn`, because the hub does not hear of everything that makes work due. */
  readonly everyMs: number;
  readonly turn: () => Promise<unknown>;
  readonly log: Log;
  /** The log message for a failed call of `turn`; the next call repeats the work. */
  readonly failed: string;
}

/**
 * Calls `turn` again and again, but never two at once: immediately, whenever `due` is raised, and after `everyMs` at the latest. The function `close`
 * waits until the running call of `turn` has ended.
 */
export function wheneverDue({ due, everyMs, turn, log, failed }: DueWork): { close(): Promise<void> } {
  let closing = false;
  const loop = async (): Promise<void> => {
    while (!closing) {
      await turn().catch((error: unknown) => log.warn(failed, { error }));
      if (!closing) await due.wait(everyMs);
    }
  };
  const done = loop();
  return {
    close: async () => {
      closing = true;
      due.raise();
      await done;
    },
  };
}
