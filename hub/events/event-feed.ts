import type { Log } from "../../shared/log.ts";
import { lastSettled } from "../db/queries/domain-events-list.ts";
import type { Db } from "../db/tx.ts";
import { WakeSignal } from "../timing/wake-signal.ts";

const LOOK_EVERY_MS = 250;

/** Wakes all listeners on this hub that wait for new events. One database query for new events serves any number of listeners. */
export class EventFeed {
  readonly #db: Db;
  readonly #log: Log;
  /** The listeners that wait for new events, each with the name of its client's API token, or `webhooks of the hub` for the hub's webhook sender. */
  readonly #listeners = new Map<WakeSignal, string>();
  readonly #closing = new AbortController();
  #seen = -1n;
  #timer: NodeJS.Timeout | null = null;
  #looking = false;

  constructor(db: Db, log: Log) {
    this.#db = db;
    this.#log = log;
  }

  /** The signal that aborts when the hub stops and therefore closes the event feed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  listenersOf(holder: string): number {
    return [...this.#listeners.values()].filter((one) => one === holder).length;
  }

  /**
   * Adds a listener for new events, and returns the signal `wake` that the event feed raises when there are new events. The function `leave` in the
   * result of `listen` removes the listener.
   */
  listen(holder: string): { wake: WakeSignal; leave(): void } {
    const wake = new WakeSignal();
    this.#listeners.set(wake, holder);
    this.#timer ??= setInterval(() => void this.#look(), LOOK_EVERY_MS);
    return {
      wake,
      leave: () => {
        this.#listeners.delete(wake);
        if (this.#listeners.size === 0) this.#rest();
      },
    };
  }

  close(): void {
    this.#closing.abort();
    this.#rest();
    for (const wake of this.#listeners.keys()) wake.raise();
  }

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      const settled = await lastSettled(this.#db, this.#seen);
      if (settled === this.#seen) return;
      this.#seen = settled;
      for (const wake of this.#listeners.keys()) wake.raise();
    } catch (error) {
      this.#log.warn("the search for new events failed", { error });
    } finally {
      this.#looking = false;
    }
  }
}
