import type { MaasEvent, MaasMachine } from "../maas/port.ts";

/**
 * Keeps the machines whose last reading may be outdated although no event names them. MAAS sends an event when a power action begins, and none when
 * the power has changed. If a host's power changes without MAAS, MAAS learns the change minutes later from the BMC and sends no event.
 */

/** A machine whose state in the database is in doubt. If `key` changes, the doubt has a new reason and the series of readings restarts. */
export interface Doubtful {
  readonly systemId: string;
  readonly key: string;
}
interface Doubt {
  /** The power state that ends the doubt about a machine; null if the doubt ends only when its reason is gone. */
  readonly wanted: string | null;
  readonly key: string;
  /** The time when the machine was first read because of this doubt; null if it was not read yet. */
  since: number | null;
  readAt: number;
}

/** If a doubt about a machine lasts longer than this many milliseconds, the machine is not read again before the next sweep. */
export const DOUBT_MS = 1_800_000;
const LONGEST_PAUSE_MS = 240_000;

/**
 * The pause before the next reading of a machine is as long as the doubt about it has lasted. The pauses therefore grow, and each doubt causes about
 * a dozen readings.
 */
const pauseMs = (doubtedForMs: number): number => Math.min(doubtedForMs, LONGEST_PAUSE_MS);

/** For each type of MAAS event about a power action, the power state that the action should reach. */
const WANTED: Readonly<Record<string, string>> = { "User powering up node": "on", "User powering down node": "off" };

export class Doubts {
  /**
   * The doubts by machine: `#told` holds doubts that began with an event of MAAS, and `#recorded` holds doubts that follow from rows of the database.
   */
  readonly #told = new Map<string, Doubt>();
  readonly #recorded = new Map<string, Doubt>();

  /** Takes the machines whose state in the database is in doubt. A doubt whose reason is gone is deleted. */
  record(doubtful: readonly Doubtful[]): void {
    const ids = new Set(doubtful.map(({ systemId }) => systemId));
    for (const systemId of this.#recorded.keys()) if (!ids.has(systemId)) this.#recorded.delete(systemId);
    for (const { systemId, key } of doubtful)
      if (this.#recorded.get(systemId)?.key !== key)
        this.#recorded.set(systemId, { wanted: null, key, since: null, readAt: 0 });
  }

  /** Returns the machines in doubt that a poll at the time `now` must read. */
  due(now: number): string[] {
    const isDue = ([, { since, readAt }]: [string, Doubt]): boolean =>
      since === null || (readAt - since <= DOUBT_MS && now - readAt >= pauseMs(readAt - since));
    return [...new Set([...this.#told, ...this.#recorded].filter(isDue).map(([systemId]) => systemId))];
  }

  /**
   * Takes the results of a stored poll: the new events, oldest first, the machines that the poll requested at `now`, and the machines that it read.
   */
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
    // A machine in doubt that could not be read, or did not exist, also counts as read. If a machine in doubt did not count as read, every poll would
    // request it again.
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
