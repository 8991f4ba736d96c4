import { JOURNAL_FOLDERS, uidOfJournal } from "../system/user-journals.ts";
import { isSystemdRunning, toolFault } from "./logins.ts";
import { removalLimits } from "./removal.ts";
import { ownsUid, type Revocation } from "./tenant.ts";

export interface RemovedJournals {
  readonly found: number;
  /** The paths of journals that the agent could not remove, each with the reason. */
  readonly left: readonly string[];
}

/**
 * Removes the journals of the tenant's uids. journald first writes the messages that it still holds in memory, and then closes its files, because it
 * would continue to write to an open file that the agent has removed.
 */
export async function removeUserJournals(revocation: Revocation): Promise<RemovedJournals> {
  const { system, plan } = revocation;
  const found = new Set(await journalsOf(revocation));
  if (plan) return { found: found.size, left: [] };
  const faults: string[] = [];
  if (await isSystemdRunning(system))
    for (const order of ["--sync", "--rotate"]) {
      const fault = await toolFault(system, "journalctl", [order]);
      if (fault !== null) faults.push(fault);
      for (const path of await journalsOf(revocation)) found.add(path);
    }
  const limits = removalLimits(revocation);
  for (const path of await journalsOf(revocation)) {
    const { left } = await system.removeConfined(path, limits);
    faults.push(...left.map((one) => `${one.path}: ${one.reason}`));
  }
  const left = await journalsOf(revocation);
  return { found: found.size, left: left.length === 0 ? [] : [...left, ...faults] };
}

async function journalsOf({ system, tenant }: Revocation): Promise<string[]> {
  const paths: string[] = [];
  for (const parent of JOURNAL_FOLDERS)
    for (const folder of await system.list(parent)) {
      const path = `${parent}/${folder}`;
      if ((await system.entry(path))?.kind !== "folder") continue;
      for (const name of await system.list(path)) paths.push(`${path}/${name}`);
    }
  return paths.filter((path) => {
    const uid = uidOfJournal(path);
    return uid !== null && ownsUid(tenant, uid);
  });
}
