import type { TaskInput } from "./tasks/index.ts";

type Input = Pick<
  TaskInput<"node.storage_cleanup">,
  "scope" | "temporary" | "scratch" | "shares" | "free_space" | "disks" | "disk_pool" | "plan"
>;

const HOUR_S = 3_600;
const EMPTY_WITHIN_S = 4 * HOUR_S;
/** At 1 GB per second, filling a data disk of 30 TB takes about eight hours. */
const FILL_WITHIN_S = 24 * HOUR_S;
const WEKA_WITHIN_S = 900;
/** A worker process of a purge may take four days, because the overwrite of a large disk takes two days. */
const PURGE_WITHIN_S = 96 * HOUR_S;
/**
 * How many worker processes, one after the other, a task may start to wait for the end of one disk's purge. Only the first worker process of a disk's
 * purge sends the purge command to the disk.
 */
const PURGE_ROUNDS = 3;
/**
 * How long the last worker process of a purge may take, which makes and mounts the file systems of the disk. One run of `mkfs` may take half an hour.
 */
const RESTORE_WITHIN_S = 8 * HOUR_S;
/**
 * The time that the agent needs for a worker process in addition to the work itself: to start it, to notice its loss, to end it, and to use its own
 * files.
 */
const AROUND_WORKER_S = 600;
/**
 * The hub does not know how many of a profile's disks one host has. Most hosts have fewer than `MOST_POOL_DISKS` data disks. The hub plans time for
 * the purge of at most 16 of the data disks that a profile lists; this time is months, and in practice enough even for 64 disks.
 */
const MOST_POOL_DISKS = 16;
const TEMPORARY_FOLDERS = ["/tmp", "/var/tmp"];

type FolderStep = "temporary" | "scratch" | "share" | "free_space";
type WekaStep = "weka_mounts" | "weka_tokens";

/**
 * For each kind of work of a storage cleanup: the longest time of one worker process, and how many worker processes may work on one target, one after
 * the other.
 */
export const STORAGE_LIMITS = {
  weka_mounts: { seconds: WEKA_WITHIN_S, rounds: 1 },
  weka_tokens: { seconds: WEKA_WITHIN_S, rounds: 1 },
  temporary: { seconds: EMPTY_WITHIN_S, rounds: 1 },
  scratch: { seconds: EMPTY_WITHIN_S, rounds: 1 },
  share: { seconds: EMPTY_WITHIN_S, rounds: 1 },
  free_space: { seconds: FILL_WITHIN_S, rounds: 1 },
  disk: { seconds: PURGE_WITHIN_S, rounds: PURGE_ROUNDS },
  file_system: { seconds: RESTORE_WITHIN_S, rounds: 1 },
} as const satisfies Record<FolderStep | WekaStep | "disk" | "file_system", { seconds: number; rounds: number }>;

export interface StorageWork<S extends FolderStep | WekaStep = FolderStep | WekaStep> {
  readonly step: S;
  /** What this part of a storage cleanup cleans, for example a folder; the cleaning step in the task's result has the same target. */
  readonly target: string;
}

/** Returns the parts of a storage cleanup, without the purges of disks, in the order in which the agent does them. */
export function storageWorks({ scope, temporary, scratch, shares, free_space }: Input): StorageWork[] {
  const weka: StorageWork[] =
    scope === "local"
      ? []
      : [
          { step: "weka_mounts", target: "wekafs" },
          { step: "weka_tokens", target: "~/.weka/auth-token.json" },
        ];
  if (scope === "weka") return weka;
  const folders: StorageWork<FolderStep>[] = [
    ...(temporary ? TEMPORARY_FOLDERS : []).map((target) => ({ step: "temporary" as const, target })),
    ...scratch.map((target) => ({ step: "scratch" as const, target })),
    ...shares.map((target) => ({ step: "share" as const, target })),
  ];
  const fills = free_space ? folders.map(({ target }) => ({ step: "free_space" as const, target })) : [];
  return [...weka, ...folders, ...fills];
}

/** The number of disks for whose purge a storage cleanup with the given input gets time. */
function disksIn({ scope, disks, disk_pool: pool = [] }: Input): number {
  return scope === "weka" ? 0 : Math.max(disks.length, Math.min(MOST_POOL_DISKS, disks.length + pool.length));
}

/**
 * How many seconds a storage cleanup with the given input may take: the sum for all worker processes that the agent may start. From the time that the
 * agent may need, the hub makes the deadline of the task `node.storage_cleanup`, so that the deadline never passes while the agent keeps its own
 * limits.
 */
export function storageCleanupSeconds(input: Input): number {
  const perDisk = (["disk", "file_system"] as const).reduce((sum, step) => sum + secondsOf(step), 0);
  const works = storageWorks(input).reduce((sum, { step }) => sum + secondsOf(step), 0);
  return AROUND_WORKER_S + works + disksIn(input) * perDisk;
}

const secondsOf = (step: keyof typeof STORAGE_LIMITS): number =>
  STORAGE_LIMITS[step].rounds * (STORAGE_LIMITS[step].seconds + AROUND_WORKER_S);
