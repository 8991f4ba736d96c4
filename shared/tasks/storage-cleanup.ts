import { z } from "zod";
import { isScratchPath } from "../scratch-path.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

const STORAGE_STEPS = [
  "temporary",
  "scratch",
  "share",
  "free_space",
  "weka_mounts",
  "weka_fstab",
  "weka_tokens",
  "disk",
  "file_system",
] as const;

export const ScratchFolder = z
  .string()
  .max(200)
  .refine(isScratchPath, "must be an absolute path of a folder that is not the system's");

/** The serial number of a disk comes from the disk's maker and has no spaces at its ends. */
const DiskSerial = z
  .string()
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,62}[\x21-\x7e])?$/, "must be the serial number of a disk");

const MOST_LISTED_DISKS = 512;
const MOST_NAMED_DISKS = 64;
const nameOnce = (serials: readonly string[]): boolean => new Set(serials).size === serials.length;
export const NamedDisks = z.array(DiskSerial).max(MOST_NAMED_DISKS).refine(nameOnce, "must name each disk once");
/** A profile names serial numbers of the data disks of all its hosts. */
export const ListedDisks = z.array(DiskSerial).max(MOST_LISTED_DISKS).refine(nameOnce, "must name each disk once");

export const DataShare = z.string().regex(/^[/]share\d{1,3}$/, "must be /share and a number");

/**
 * Cleans the storage of a host between two tenants (lifecycle 5.5). The task `node.storage_cleanup` is destructive: a second delivery that comes late
 * would delete the files of the next tenant. The work of `node.storage_cleanup` runs outside the agent's process.
 */
export const storageCleanup = defineTask({
  type: "node.storage_cleanup",
  changes: "host",
  leaseSeconds: 300,
  destructive: true,
  input: z.strictObject({
    scope: z.enum(["local", "weka", "all"]),
    temporary: z.boolean(),
    /** The task `node.storage_cleanup` skips a scratch folder that the host does not have. */
    scratch: z.array(ScratchFolder).max(16),
    /** The storage cleanup fails for a data disk if no file system is mounted at the disk's mount point. */
    shares: z.array(DataShare).max(64),
    /** If true, the storage cleanup overwrites with zeros the free space of each file system in which it emptied a folder. */
    free_space: z.boolean(),
    /**
     * The folders of the host below which a tenant's Weka file systems are mounted. From /etc/fstab, the storage cleanup removes only the lines of
     * the tenant's Weka file systems.
     */
    weka_prefixes: z.array(ScratchFolder).max(16),
    /**
     * The data disks that the task purges, by serial number and WWN (the disk's worldwide id). The storage cleanup fails if a disk in `disks` is not
     * a disk of the host. The storage cleanup never purges a disk that neither `disks` nor `disk_pool` names.
     */
    disks: z
      .array(z.strictObject({ serial: z.string().min(1).max(64), wwn: z.string().min(1).max(64).nullable() }))
      .max(64),
    /**
     * `disk_pool` lists serial numbers of data disks of several hosts. The storage cleanup purges the disks of `disk_pool` that the host has, and
     * fails if the host has none of them.
     */
    disk_pool: ListedDisks.exactOptional(),
    /** `sample_seed`, in hexadecimal digits, determines which blocks of a disk the agent reads before and after a purge. */
    sample_seed: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .exactOptional(),
    plan: z.boolean(),
  }),
  result: z.strictObject({ steps: cleaningStepsNamed(STORAGE_STEPS) }),
  progress: z.strictObject({ step: z.string().max(64), done: z.number().min(0), bytes: z.number().min(0) }),
  errors: {
    /** The agent has cleaned nothing, because it could not write to its own state folder. */
    not_recorded: "retry",
  },
});
