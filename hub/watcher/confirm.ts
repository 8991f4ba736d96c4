import type { SiteId } from "../../shared/ids.ts";
import { presentAmong } from "../db/queries/maas-machines.ts";
import type { Db } from "../db/tx.ts";
import { MaasError, type MaasMachine, type MaasPort } from "../maas/port.ts";

/** The largest number of missing machines of a site that one poll reads directly. */
const MAX_CONFIRMATIONS = 100;

export interface Confirmed {
  readonly gone: readonly string[];
  readonly present: readonly MaasMachine[];
  readonly left: readonly string[];
}
const NOTHING: Confirmed = { gone: [], present: [], left: [] };

/**
 * A machine that is missing in a list is not proven to be gone, because a permission may have changed. A missing machine is gone if MAAS answers 404
 * to a direct read of the machine while the hub's user is an administrator (decision M14). Of the machines that are missing in MAAS's list, the hub
 * reads only those that the database lists as present.
 */
export async function confirmGone(
  db: Db,
  siteId: SiteId,
  maas: MaasPort,
  missing: { readonly now: readonly string[]; readonly inTurn: readonly string[] },
): Promise<Confirmed> {
  const asked = [...new Set([...missing.now, ...missing.inTurn])];
  if (asked.length === 0) return NOTHING;
  const known = new Set(await presentAmong(db, siteId, asked));
  const suspects = asked.filter((systemId) => known.has(systemId));
  if (suspects.length === 0 || !(await maas.whoami()).isSuperuser) return NOTHING;
  const gone: string[] = [];
  const present: MaasMachine[] = [];
  for (const systemId of suspects.slice(0, MAX_CONFIRMATIONS)) {
    const machine = await readIfReadable(maas, systemId);
    if (machine === "gone") gone.push(systemId);
    else if (machine !== "unreadable") present.push(machine);
  }
  // MAAS also answers 404 to a user who may not read a machine, so the hub checks the rights of its MAAS user after direct reads of missing machines.
  if (gone.length > 0 && !(await maas.whoami()).isSuperuser) return { ...NOTHING, present };
  return { gone, present, left: suspects.slice(MAX_CONFIRMATIONS) };
}

/** An answer of MAAS that the hub cannot parse still proves that the machine exists. */
async function readIfReadable(maas: MaasPort, systemId: string): Promise<MaasMachine | "gone" | "unreadable"> {
  try {
    return (await maas.readMachine(systemId)) ?? "gone";
  } catch (error) {
    if (error instanceof MaasError && error.code === "bad_answer") return "unreadable";
    throw error;
  }
}
