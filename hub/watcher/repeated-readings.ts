import type { MaasEvent, MaasMachine } from "../maas/port.ts";

/**
 * Keeps the machines whose last reading may be outdated although no event names them. MAAS sends an event when a power action begins, and none when
 * the power has changed. If a host's power changes without MAAS, MAAS learns the change minutes later from the BMC and sends no event.
 */

/** If `key` changes, there is a new reason to read the machine, and the machine's series of readings starts from the beginning. */
export interface MachineToReread {
  readonly systemId: string;
  readonly key: string;
}
/** A series of repeated readings of one MAAS machine whose last reading may be outdated. */
interface Series {
  /** The power state of the machine that ends the series of readings; null if the series of readings ends only when its reason is gone. */
  readonly wanted: string | null;
  readonly key: string;
  /** The time of the first reading of the machine in this series; null if the series has no reading yet. */
  since: number | null;
  readAt: number;
}

/**
 * The longest duration of a series of readings of one machine, in milliseconds. After a machine's series of repeated readings has ended, the hub
 * reads the machine only because of a new MAAS event or when it reads all machines.
 */
export const SERIES_MS = 1_800_000;
const LONGEST_PAUSE_MS = 240_000;

/**
 * Returns the pause before the next reading in a series of readings of one machine. The pause before the next reading is as long as the machine's
 * series of repeated readings has lasted so far, and at most four minutes. Because the pauses between readings grow, one machine's series of repeated
 * readings has about a dozen readings.
 */
const pauseMs = (seriesLastedMs: number): number => Math.min(seriesLastedMs, LONGEST_PAUSE_MS);

/** For each type of MAAS event about a power action, the power state that the action should reach. */
const WANTED: Readonly<Record<string, string>> = { "User powering up node": "on", "User powering down node": "off" };

export class RepeatedReadings {
  /**
   * `#told` holds the machines' series of repeated readings that began with a MAAS event about a power action. `#recorded` holds the series of
   * repeated readings of machines whose row in the database may be outdated.
   */
  readonly #told = new Map<string, Series>();
  readonly #recorded = new Map<string, Series>();

  /**
   * Takes the machines whose row in the database may be outdated, and begins a series of readings of each machine. The series of readings of a
   * machine that an earlier call of `record` named ends when a later call does not name the machine.
   */
  record(toReread: readonly MachineToReread[]): void {
    const ids = new Set(toReread.map(({ systemId }) => systemId));
    for (const systemId of this.#recorded.keys()) if (!ids.has(systemId)) this.#recorded.delete(systemId);
    for (const { systemId, key } of toReread)
      if (this.#recorded.get(systemId)?.key !== key)
        this.#recorded.set(systemId, { wanted: null, key, since: null, readAt: 0 });
  }

  /** Returns the MAAS machines whose next repeated reading is due in a poll at the time `now`. */
  due(now: number): string[] {
    const isDue = ([, { since, readAt }]: [string, Series]): boolean =>
      since === null || (readAt - since <= SERIES_MS && now - readAt >= pauseMs(readAt - since));
    return [...new Set([...this.#told, ...this.#recorded].filter(isDue).map(([systemId]) => systemId))];
  }

  /**
   * Begins, continues and ends the machines' series of repeated readings after a poll whose results are stored. The arguments of `polled` are the new
   * events, oldest first, the machines that the poll requested at `now`, and the machines that the poll read.
   */
  polled(
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
    // The hub also notes the time of a failed reading of a requested machine, because otherwise every poll would request this machine.
    for (const systemId of [...asked, ...machines.map((machine) => machine.systemId)])
      for (const series of [this.#told.get(systemId), this.#recorded.get(systemId)]) {
        if (series === undefined) continue;
        series.since ??= now;
        series.readAt = now;
      }
    for (const [systemId, { since }] of this.#told)
      if (since !== null && now - since > SERIES_MS) this.#told.delete(systemId);
  }
}
