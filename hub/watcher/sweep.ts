import type { SiteId } from "../../shared/ids.ts";
import { databaseClock } from "../db/queries/clock.ts";
import { knownSystemIds } from "../db/queries/maas-machines.ts";
import type { Db } from "../db/tx.ts";
import type { MaasPort, MachineList } from "../maas/port.ts";
import { within } from "../timing/pause.ts";

export interface SweptList {
  readonly machines: MachineList["machines"];
  readonly unreadable: MachineList["unreadable"];
  /** The time, by the database's clock, when the hub began to read all machines of the site from MAAS. */
  readonly readSince: string;
  readonly missing: readonly string[];
}
type SweepEnd = { readonly list: SweptList } | { readonly error: unknown };

/**
 * A sweep is one reading of all machines of a site. In a large MAAS region the reading of all machines takes minutes, while the site's polls
 * continue. If a poll reads a machine during a reading of all machines of the site, the poll's reading of this machine is the newer one.
 */
export class Sweep {
  readonly requestedAt: Date | null;
  readonly beganAt = performance.now();
  readonly #ended: Promise<void>;
  #end: SweepEnd | null = null;
  /**
   * The machines that a reading of all machines did not find and that the hub must still read directly; null until the list of found machines was
   * stored.
   */
  toConfirm: readonly string[] | null = null;

  private constructor(list: Promise<SweptList>, requestedAt: Date | null) {
    this.requestedAt = requestedAt;
    this.#ended = list.then(
      (swept) => {
        this.#end = { list: swept };
      },
      (error: unknown) => {
        this.#end = { error };
      },
    );
  }

  /**
   * Begins to read all machines of a site from MAAS, and waits at most `patienceMs` for the end. If MAAS needs more than `patienceMs` to list all
   * machines, a later poll uses the list.
   */
  static async begin(
    db: Db,
    siteId: SiteId,
    maas: MaasPort,
    { requestedAt, patienceMs }: { requestedAt: Date | null; patienceMs: number },
  ): Promise<Sweep> {
    const sweep = new Sweep(readAll(db, siteId, maas), requestedAt);
    await within(patienceMs, sweep.#ended);
    return sweep;
  }

  get end(): SweepEnd | null {
    return this.toConfirm === null ? this.#end : null;
  }

  whenEnded(then: () => void): void {
    void this.#ended.then(then);
  }

  get tookMs(): number {
    return performance.now() - this.beganAt;
  }
}

async function readAll(db: Db, siteId: SiteId, maas: MaasPort): Promise<SweptList> {
  const readSince = await databaseClock(db);
  const known = await knownSystemIds(db, siteId);
  const { machines, unreadable } = await maas.listMachines();
  return { machines, unreadable, readSince, missing: missingFrom(known, { machines, unreadable }) };
}

/** Returns the requested machines that are missing in MAAS's answer. A machine that is in MAAS's answer but cannot be parsed is not missing. */
export function missingFrom(asked: readonly string[], { machines, unreadable }: MachineList): string[] {
  const answered = new Set<string | null>([
    ...machines.map((machine) => machine.systemId),
    ...unreadable.map((machine) => machine.systemId),
  ]);
  return asked.filter((systemId) => !answered.has(systemId));
}
