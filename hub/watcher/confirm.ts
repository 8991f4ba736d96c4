import type { SiteId } from "../../shared/ids.ts";
import { presentAmong } from "../db/queries/maas-machines.ts";
import type { Db } from "../db/tx.ts";
import { MaasError, type MaasMachine, type MaasPort } from "../maas/port.ts";

/** Direct reads of vanished machines in one look. */
const MAX_CONFIRMATIONS = 100;

export interface Confirmed {
  readonly gone: readonly string[];
  /** They were missing from a list, and are there all the same. */
  readonly present: readonly MaasMachine[];
  /** The ones that are still to be asked for. */
  readonly left: readonly string[];
}
const NOTHING: Confirmed = { gone: [], present: [], left: [] };

/**
 * Missing from a list proves nothing: it may be a permission that changed. Gone is what a direct read answers with 404 while we are admin
 * (decision M14). What is known to be gone, or was never seen, is not asked for again.
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
  // A right that was lost while we asked is what 404 says too.
  if (gone.length > 0 && !(await maas.whoami()).isSuperuser) return { ...NOTHING, present };
  return { gone, present, left: suspects.slice(MAX_CONFIRMATIONS) };
}

/** An answer that cannot be read is an answer: the machine is there. */
async function readIfReadable(maas: MaasPort, systemId: string): Promise<MaasMachine | "gone" | "unreadable"> {
  try {
    return (await maas.readMachine(systemId)) ?? "gone";
  } catch (error) {
    if (error instanceof MaasError && error.code === "bad_answer") return "unreadable";
    throw error;
  }
}
