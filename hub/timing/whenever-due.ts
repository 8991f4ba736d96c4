import type { Log } from "../../shared/log.ts";
import type { WakeSignal } from "./wake-signal.ts";

export interface DueWork {
  readonly due: WakeSignal;
  /** The longest time between two turns, because a hub does not hear of everything that makes work due. */
  readonly everyMs: number;
  readonly turn: () => Promise<unknown>;
  readonly log: Log;
  /** The log message for a failed turn. After a failed turn, the next turn tries again. */
  readonly failed: string;
}

/** Runs one turn of work after the other: at once, whenever `due` is raised, and after `everyMs` at the latest. `close` waits for the running turn. */
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
