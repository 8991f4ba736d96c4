import { storageCleanupSeconds } from "../../../shared/storage-works.ts";
import type { TaskInput } from "../../../shared/tasks/index.ts";
import type { MaasSiteProfile } from "../../db/schema/index.ts";
import type { DecommissionInput } from "./decommission-context.ts";

type Policy = Pick<MaasSiteProfile, "scratchFolders" | "dataShares" | "wekaPrefixes" | "clearFreeSpace" | "purgeDisks">;
type Asked = Pick<DecommissionInput, "storage_cleanup" | "purge_disks">;

const MOST_NAMED = 64;

interface Disks {
  readonly named: readonly string[];
  readonly pool: readonly string[];
}

/** Returns the disks that the request names or the profile lists. For a request to clean only Weka file systems, `disksOf` returns no disks. */
function disksOf(asked: Asked, policy: Policy | null): Disks {
  if (asked.storage_cleanup === "weka") return { named: [], pool: [] };
  return { named: asked.purge_disks, pool: policy?.purgeDisks ?? [] };
}

/** Returns the disks that the host must have: disks that the request names, and disks of the profile that the hub knows in the host. */
export function expectedDisks(asked: Asked, policy: Policy | null, known: ReadonlySet<string>): string[] {
  const { named, pool } = disksOf(asked, policy);
  return [...new Set([...named, ...pool.filter((serial) => known.has(serial))])];
}

/** Returns the seconds that the agent may take for an order to clean storage; they do not depend on the disks that the hub knows in the host. */
export const storageSeconds = (asked: Asked, policy: Policy | null): number =>
  storageCleanupSeconds(storageOrder(asked, policy, "", new Set()));

/**
 * The argument `seed` is a new random number for each order to clean storage (lifecycle 5.5). The argument `known` has the serial numbers of the
 * disks that the hub knows to be in the host. The order to clean storage names each disk of the profile's list that the hub knows in the host; if the
 * host hides such a disk, the agent's step for it fails.
 */
export function storageOrder(
  asked: Asked,
  policy: Policy | null,
  seed: string,
  known: ReadonlySet<string>,
): TaskInput<"node.storage_cleanup"> {
  const named = expectedDisks(asked, policy, known).slice(0, MOST_NAMED);
  const pool = disksOf(asked, policy).pool.filter((serial) => !named.includes(serial));
  return {
    scope: asked.storage_cleanup === "none" ? "all" : asked.storage_cleanup,
    temporary: true,
    scratch: policy?.scratchFolders ?? [],
    shares: policy?.dataShares ?? [],
    free_space: policy?.clearFreeSpace ?? false,
    weka_prefixes: policy?.wekaPrefixes ?? [],
    disks: named.map((serial) => ({ serial, wwn: null })),
    // An agent of an older version refuses unknown fields, so an order to clean storage has the fields `disk_pool` and `sample_seed` only if there
    // are disks to purge.
    ...(pool.length > 0 ? { disk_pool: pool } : {}),
    ...(named.length + pool.length > 0 ? { sample_seed: seed } : {}),
    plan: false,
  };
}
