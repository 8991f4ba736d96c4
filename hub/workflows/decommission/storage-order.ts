import type { TaskInput } from "../../../shared/tasks/index.ts";
import type { MaasSiteProfile } from "../../db/schema/index.ts";
import type { DecommissionInput } from "./decommission-context.ts";

type Policy = Pick<MaasSiteProfile, "scratchFolders" | "dataShares" | "wekaPrefixes" | "clearFreeSpace" | "purgeDisks">;
type Asked = Pick<DecommissionInput, "storage_cleanup" | "purge_disks">;

/** The agent has this many seconds to empty the folders to which tenants write. */
const EMPTY_SECONDS = 6 * 3_600;
/**
 * The agent has this many seconds to overwrite the free space of one file system. To overwrite the free space of a disk of 30 TB, the agent needs
 * half a day.
 */
const FILL_SECONDS = 24 * 3_600;
/** The agent has a day for the purge of one disk, and an hour to find a lost worker process. Most disks need minutes. */
const PURGE_SECONDS = 25 * 3_600;
/** The hub does not know how many of the profile's disks are in one host. Most hosts have fewer than this many data disks. */
const MOST_DISKS = 16;

/** An order names at most this many disks. The agent purges no more disks of one host. */
const MOST_NAMED = 64;

interface Disks {
  readonly named: readonly string[];
  readonly pool: readonly string[];
}

/** The disks that the request names and those that the profile lists, unless the request does not ask for a cleaning of the host's own storage. */
function disksOf(asked: Asked, policy: Policy | null): Disks {
  if (asked.storage_cleanup === "weka") return { named: [], pool: [] };
  return { named: asked.purge_disks, pool: policy?.purgeDisks ?? [] };
}

/** The disks of the order that the host must have: those of the request, and the listed disks that the hub knows as disks of the host. */
export function expectedDisks(asked: Asked, policy: Policy | null, known: ReadonlySet<string>): string[] {
  const { named, pool } = disksOf(asked, policy);
  return [...new Set([...named, ...pool.filter((serial) => known.has(serial))])];
}

/** How long the agent may take. Each folder that the agent empties may be on a file system of its own; two of the folders are /tmp and /var/tmp. */
export function storageSeconds(asked: Asked, policy: Policy | null): number {
  const { named, pool } = disksOf(asked, policy);
  const purge = PURGE_SECONDS * Math.max(named.length, Math.min(MOST_DISKS, named.length + pool.length));
  const folders = 2 + (policy?.scratchFolders.length ?? 0) + (policy?.dataShares.length ?? 0);
  return EMPTY_SECONDS + purge + (policy?.clearFreeSpace === true ? FILL_SECONDS * folders : 0);
}

/**
 * The order that cleans the storage of a host (lifecycle 5.5). `seed` is a new random number for each order. `known` has the serial numbers of the
 * disks that the host has according to the hub. A listed disk that the hub knows is named in the order, so the step of a disk that the host does not
 * show fails.
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
    // An agent of an older version refuses an order with fields that it does not know, so only an order with disks has these two fields.
    ...(pool.length > 0 ? { disk_pool: pool } : {}),
    ...(named.length + pool.length > 0 ? { sample_seed: seed } : {}),
    plan: false,
  };
}
