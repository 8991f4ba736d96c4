import { setTimeout as pause } from "node:timers/promises";
import { Refused } from "./errors.ts";
import { followEvents } from "./events.ts";
import type { Hub } from "./hub.ts";

/**
 * A command that waits also reads again after this time, because it does not follow each move to a next stage: a busy fleet sends many events of such
 * moves in a second.
 */
const AGAIN_MS = 10_000;
/** The time in milliseconds between two readings of the state for a caller without the hub's events, who cannot know when the state changes. */
const WITHOUT_EVENTS_MS = 3_000;
/** Events that come together cause one reading. */
const TOGETHER_MS = 150;

/** Tells a command such as `muster wait` when to read the state of its objects again: after an event, and otherwise after some seconds. */
export class Changes {
  #raised = false;
  #wake: (() => void) | null = null;
  #againMs = AGAIN_MS;
  /** True if the hub has answered already. */
  answered = false;

  /** Returns as soon as the hub sends its events, so that a command that reads the state afterwards misses no later change. */
  static async follow(hub: Hub, types: readonly string[], signal: AbortSignal): Promise<Changes> {
    const changes = new Changes();
    const raise = (): void => changes.#raise();
    if (types.length === 0) changes.#againMs = WITHOUT_EVENTS_MS;
    else
      try {
        await followEvents(hub, types, { heard: raise, lost: raise, signal });
        changes.answered = true;
      } catch (error) {
        // The hub serves a limited number of event streams, and not every role may read events.
        if (!(error instanceof Refused) || ![403, 429, 502, 503, 504].includes(error.httpStatus ?? 0)) throw error;
        changes.answered = true;
        changes.#againMs = WITHOUT_EVENTS_MS;
      }
    return changes;
  }

  #raise(): void {
    this.#raised = true;
    this.#wake?.();
  }

  /** Waits until the command should read the state of its objects again, at most `atMostMs`. */
  async next(atMostMs: number, signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const either = AbortSignal.any([signal, ended.signal]);
    this.#wake = () => ended.abort();
    if (!this.#raised)
      await pause(Math.min(atMostMs, this.#againMs), undefined, { signal: either }).catch(() => undefined);
    this.#wake = null;
    if (this.#raised) await pause(Math.min(atMostMs, TOGETHER_MS), undefined, { signal }).catch(() => undefined);
    this.#raised = false;
  }
}
