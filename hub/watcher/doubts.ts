import type { MaasEvent, MaasMachine } from "../maas/port.ts";

/**
 * Machines whose last reading may be out of date although no event names them. MAAS tells that a power action begins and never that power has
 * changed; and what happens to a host behind MAAS's back it finds out by itself, minutes later, and tells nobody.
 */

/** A machine that what is recorded makes doubtful; another `key` is another reason, and begins anew. */
export interface Doubtful {
  readonly systemId: string;
  readonly key: string;
}
interface Doubt {
  /** What settles it; null: nothing but that its reason is gone. */
  readonly wanted: string | null;
  readonly key: string;
  /** When it was first read for it; null: not yet. */
  since: number | null;
  readAt: number;
}

/** A reading that is in doubt for longer is left to the next sweep. */
export const DOUBT_MS = 1_800_000;
const LONGEST_PAUSE_MS = 240_000;

/** Read again after as long as it has been in doubt, so at growing intervals and a dozen times in all. */
const pauseMs = (doubtedForMs: number): number => Math.min(doubtedForMs, LONGEST_PAUSE_MS);

/** What a power action means the machine to be. */
const WANTED: Readonly<Record<string, string>> = { "User powering up node": "on", "User powering down node": "off" };

export class Doubts {
  /** By machine: what an event began, and what is recorded. */
  readonly #told = new Map<string, Doubt>();
  readonly #recorded = new Map<string, Doubt>();

  /** What is recorded now: a reason that is gone is forgotten. */
  record(doubtful: readonly Doubtful[]): void {
    const ids = new Set(doubtful.map(({ systemId }) => systemId));
    for (const systemId of this.#recorded.keys()) if (!ids.has(systemId)) this.#recorded.delete(systemId);
    for (const { systemId, key } of doubtful)
      if (this.#recorded.get(systemId)?.key !== key)
        this.#recorded.set(systemId, { wanted: null, key, since: null, readAt: 0 });
  }

  /** The machines to be read in a look at `now`. */
  due(now: number): string[] {
    const isDue = ([, { since, readAt }]: [string, Doubt]): boolean =>
      since === null || (readAt - since <= DOUBT_MS && now - readAt >= pauseMs(readAt - since));
    return [...new Set([...this.#told, ...this.#recorded].filter(isDue).map(([systemId]) => systemId))];
  }

  /** A look that was kept: the events that were news to it, oldest first, the machines that it asked for at `now`, and what it saw of them. */
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
    // One that could not be read, or was not there, is not asked for with every look either.
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
