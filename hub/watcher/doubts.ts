import type { MaasEvent, MaasMachine } from "../maas/port.ts";

/**
 * Machines whose last reading may be outdated although no event names them. MAAS sends an event when a power action begins, and none when the power
 * has changed. If a host's power changes without MAAS, its BMC poll finds that minutes later and sends no event.
 */

/** A machine whose recorded state is in doubt. A changed `key` is a new reason and restarts the series of readings. */
export interface Doubtful {
  readonly systemId: string;
  readonly key: string;
}
interface Doubt {
  /** The power state that ends the doubt. Null if the doubt ends only when its reason is gone. */
  readonly wanted: string | null;
  readonly key: string;
  /** When the machine was first read for this doubt; null if not yet. */
  since: number | null;
  readAt: number;
}

/** A doubt that lasts longer is left to the next sweep. */
export const DOUBT_MS = 1_800_000;
const LONGEST_PAUSE_MS = 240_000;

/** The pause before the next reading is as long as the doubt has lasted. The intervals thus grow, and there are about a dozen readings. */
const pauseMs = (doubtedForMs: number): number => Math.min(doubtedForMs, LONGEST_PAUSE_MS);

/** The power state that each power action is meant to reach. */
const WANTED: Readonly<Record<string, string>> = { "User powering up node": "on", "User powering down node": "off" };

export class Doubts {
  /** The doubts by machine: those that an event began, and those from the stored state. */
  readonly #told = new Map<string, Doubt>();
  readonly #recorded = new Map<string, Doubt>();

  /** Takes the doubts of the stored state. A doubt whose reason is gone is deleted. */
  record(doubtful: readonly Doubtful[]): void {
    const ids = new Set(doubtful.map(({ systemId }) => systemId));
    for (const systemId of this.#recorded.keys()) if (!ids.has(systemId)) this.#recorded.delete(systemId);
    for (const { systemId, key } of doubtful)
      if (this.#recorded.get(systemId)?.key !== key)
        this.#recorded.set(systemId, { wanted: null, key, since: null, readAt: 0 });
  }

  /** The machines to be read in a poll at `now`. */
  due(now: number): string[] {
    const isDue = ([, { since, readAt }]: [string, Doubt]): boolean =>
      since === null || (readAt - since <= DOUBT_MS && now - readAt >= pauseMs(readAt - since));
    return [...new Set([...this.#told, ...this.#recorded].filter(isDue).map(([systemId]) => systemId))];
  }

  /** Takes the results of a stored poll: its new events, oldest first, the machines that it requested at `now`, and the machines that it read. */
  looked(
    events: readonly MaasEvent[],
    { asked, machines }: { readonly asked: readonly string[]; readonly machines: readonly MaasMachine[] },
    now: number,
  ): void {
    for (const { node, type, id } of events) {
      const wanted = WANTED[type];
      if (wanted !== undefined) this.#told.set(node, { wanted, key: String(id), since: null, readAt: 0 });
    }
    for (const { systemId, powerState } of machines)
      if (this.#told.get(systemId)?.wanted === powerState) this.#told.delete(systemId);
    // A machine that could not be read, or did not exist, also counts as read, so that not every poll requests it.
    for (const systemId of [...asked, ...machines.map((machine) => machine.systemId)])
      for (const doubt of [this.#told.get(systemId), this.#recorded.get(systemId)]) {
        if (doubt === undefined) continue;
        doubt.since ??= now;
        doubt.readAt = now;
      }
    for (const [systemId, { since }] of this.#told)
      if (since !== null && now - since > DOUBT_MS) this.#told.delete(systemId);
  }
}
