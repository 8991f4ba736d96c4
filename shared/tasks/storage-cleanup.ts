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
] as const;

/** A folder that the task `node.storage_cleanup` may empty. */
export const ScratchFolder = z
  .string()
  .max(200)
  .refine(isScratchPath, "must be an absolute path of a folder that is not the system's");

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
     * The data disks that the task may erase, by the serial number and WWN of the hub's inventory. The task never erases a disk that `disks` does not
     * name.
     */
    disks: z
      .array(z.strictObject({ serial: z.string().min(1).max(64), wwn: z.string().min(1).max(64).nullable() }))
      .max(64),
    plan: z.boolean(),
  }),
  result: z.strictObject({ steps: cleaningStepsNamed(STORAGE_STEPS) }),
  progress: z.strictObject({ step: z.string().max(64), done: z.number().min(0), bytes: z.number().min(0) }),
  errors: {
    /** The agent could not write to its own state folder, and has cleaned nothing. */
    not_recorded: "retry",
  },
});
