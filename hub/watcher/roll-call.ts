import type { SiteId } from "../../shared/ids.ts";
import { knownSystemIds } from "../db/queries/maas-machines.ts";
import type { Db } from "../db/tx.ts";
import type { MaasPort } from "../maas/port.ts";
import { within } from "../timing/pause.ts";

/**
 * Finds machines that somebody has deleted in MAAS, by a list of all machine ids every four minutes. MAAS deletes a machine's events together with
 * the machine, so no event reports the deletion (lifecycle 6.4). A list of machine ids costs MAAS a hundredth of a list of machines, and needs one
 * request for any number of machines.
 */
export const ROLL_CALL_MS = 240_000;
/**
 * The time in milliseconds that a poll waits for MAAS's list of machine ids. If MAAS's list of machine ids arrives later than PATIENCE_MS after the
 * request, a later poll uses the list to find deleted machines.
 */
const PATIENCE_MS = 2_000;

type End = { readonly missing: readonly string[] } | { readonly error: unknown };

export class RollCall {
  readonly #ended: Promise<void>;
  #end: End | null = null;

  private constructor(missing: Promise<readonly string[]>) {
    this.#ended = missing.then(
      (ids) => {
        this.#end = { missing: ids };
      },
      (error: unknown) => {
        this.#end = { error };
      },
    );
  }

  static async begin(db: Db, siteId: SiteId, maas: MaasPort): Promise<RollCall> {
    const call = new RollCall(missingNow(db, siteId, maas));
    await within(PATIENCE_MS, call.#ended);
    return call;
  }

  get end(): End | null {
    return this.#end;
  }
}

/**
 * Returns the machines that the hub knew before the request for machine ids and that MAAS does not list. MAAS's list alone does not prove that a
 * machine is gone, so the hub must still read each missing machine directly.
 */
async function missingNow(db: Db, siteId: SiteId, maas: MaasPort): Promise<readonly string[]> {
  const known = await knownSystemIds(db, siteId);
  if (known.length === 0) return [];
  const present = await maas.systemIds();
  return known.filter((systemId) => !present.has(systemId));
}
