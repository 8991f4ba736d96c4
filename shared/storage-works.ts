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
/** One worker process of a purge has four days, because the overwrite of a large disk takes two. */
const PURGE_WITHIN_S = 96 * HOUR_S;
/**
 * How many worker processes of one task may wait, one after the other, for the end of one purge. Only the first worker process of a task sends the
 * purge command to the disk.
 */
const PURGE_ROUNDS = 3;
/** How long a last worker process may take that makes and mounts the file systems of a disk. One `mkfs` may take half an hour. */
const RESTORE_WITHIN_S = 8 * HOUR_S;
/** How long the agent may take to start a worker process, to find that one is lost, or to end one, and to read or change its own files. */
const AROUND_WORKER_S = 600;
/**
 * The hub does not know how many of a profile's disks one host has. Most hosts have fewer than `MOST_POOL_DISKS` data disks. The time of 16 disks is
 * months, which also 64 disks never need in practice.
 */
const MOST_POOL_DISKS = 16;
const TEMPORARY_FOLDERS = ["/tmp", "/var/tmp"];

type FolderStep = "temporary" | "scratch" | "share" | "free_space";
type WekaStep = "weka_mounts" | "weka_tokens";

/** How long one worker process may take for a kind of work of a storage cleanup, and how many may work on one target, one after the other. */
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
  /** The folder, or the name that the step has in the task's result. */
  readonly target: string;
}

/** The work of a storage cleanup except the disks, in the order in which the agent does the work. */
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

/** How many disks the task purges at most, as far as its input tells. */
function disksIn({ scope, disks, disk_pool: pool = [] }: Input): number {
  return scope === "weka" ? 0 : Math.max(disks.length, Math.min(MOST_POOL_DISKS, disks.length + pool.length));
}

/**
 * How many seconds a storage cleanup may take with this input: the time of each worker process that the agent may start for the task. The hub derives
 * the deadline of the task, so that no deadline passes while the agent still works within its own limits.
 */
export function storageCleanupSeconds(input: Input): number {
  const perDisk = (["disk", "file_system"] as const).reduce((sum, step) => sum + secondsOf(step), 0);
  const works = storageWorks(input).reduce((sum, { step }) => sum + secondsOf(step), 0);
  return AROUND_WORKER_S + works + disksIn(input) * perDisk;
}

const secondsOf = (step: keyof typeof STORAGE_LIMITS): number =>
  STORAGE_LIMITS[step].rounds * (STORAGE_LIMITS[step].seconds + AROUND_WORKER_S);
