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

/** A folder that the task `node.storage_cleanup` may empty. */
export const ScratchFolder = z
  .string()
  .max(200)
  .refine(isScratchPath, "must be an absolute path of a folder that is not the system's");

/** The serial number that the maker gave to a disk, without spaces at its ends. */
const DiskSerial = z
  .string()
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,62}[\x21-\x7e])?$/, "must be the serial number of a disk");

/** How many serial numbers a profile may list. */
const MOST_LISTED_DISKS = 512;
/** How many disks of a host one order names. */
const MOST_NAMED_DISKS = 64;
const nameOnce = (serials: readonly string[]): boolean => new Set(serials).size === serials.length;
/** Serial numbers of data disks of one host. */
export const NamedDisks = z.array(DiskSerial).max(MOST_NAMED_DISKS).refine(nameOnce, "must name each disk once");
/** Serial numbers of the data disks of all hosts of a profile. */
export const ListedDisks = z.array(DiskSerial).max(MOST_LISTED_DISKS).refine(nameOnce, "must name each disk once");

/** The mount point of a data disk of the host. */
export const DataShare = z.string().regex(/^[/]share\d{1,3}$/, "must be /share and a number");

/**
 * Cleans the storage of a host between two tenants (lifecycle 5.5). The task `node.storage_cleanup` is destructive: a late second delivery would
 * delete the files of the next tenant. The work of `node.storage_cleanup` runs outside the agent's process.
 */
export const storageCleanup = defineTask({
  type: "node.storage_cleanup",
  lane: "work",
  leaseSeconds: 300,
  destructive: true,
  worksOutside: true,
  input: z.strictObject({
    /** Which storage the task cleans: the host's own disks, the Weka client, or both. */
    scope: z.enum(["local", "weka", "all"]),
    /** Whether the task empties /tmp and /var/tmp. */
    temporary: z.boolean(),
    /** The site's scratch folders. The task skips a scratch folder that the host does not have. */
    scratch: z.array(ScratchFolder).max(16),
    /** The mount points of data disks. The cleaning of a data disk fails if no file system is mounted at its mount point. */
    shares: z.array(DataShare).max(64),
    /** Whether the task overwrites with zeros the free space of each file system that contains an emptied folder. */
    free_space: z.boolean(),
    /**
     * The folders of the host below which a tenant's Weka file systems are mounted. The task removes the lines of the tenant's Weka file systems from
     * /etc/fstab, and no other line.
     */
    weka_prefixes: z.array(ScratchFolder).max(16),
    /**
     * The data disks that the task purges, by serial number and WWN. Each of the disks must be a disk of the host. The task never purges a disk that
     * neither `disks` nor `disk_pool` names.
     */
    disks: z
      .array(z.strictObject({ serial: z.string().min(1).max(64), wwn: z.string().min(1).max(64).nullable() }))
      .max(64),
    /** Serial numbers of the data disks of several hosts. The task purges those that the host has, and fails if the host has none of them. */
    disk_pool: ListedDisks.exactOptional(),
    /** From this random number the agent draws the blocks of a disk that it reads before and after a purge, in hexadecimal digits. */
    sample_seed: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .exactOptional(),
    plan: z.boolean(),
  }),
  result: z.strictObject({ steps: cleaningStepsNamed(STORAGE_STEPS) }),
  progress: z.strictObject({ step: z.string().max(64), done: z.number().min(0), bytes: z.number().min(0) }),
  errors: {
    /** The agent could not write to its own state folder, and has cleaned nothing. */
    not_recorded: "retry",
  },
});
