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

/** A folder that the task may empty. */
export const ScratchFolder = z
  .string()
  .max(200)
  .refine(isScratchPath, "must be an absolute path of a folder that is not the system's");

/** The mount point of a data disk. */
export const DataShare = z.string().regex(/^[/]share\d{1,3}$/, "must be /share and a number");

/**
 * Cleans the storage of a host between two tenants (lifecycle 5.5). The task is destructive in the catalogue's sense: a second delivery that comes
 * late would delete the files of the next tenant. The work of the task runs outside the agent's process.
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
    /** The site's scratch folders. A scratch folder that the host does not have is skipped. */
    scratch: z.array(ScratchFolder).max(16),
    /** The mount points of data disks. A share without a file system mounted on it fails. */
    shares: z.array(DataShare).max(64),
    /** Whether the task overwrites the free space of the file systems of the emptied folders with zeros. */
    free_space: z.boolean(),
    /** The folders below which a tenant's Weka file systems are mounted. Their lines in /etc/fstab are removed, and no other line. */
    weka_prefixes: z.array(ScratchFolder).max(16),
    /** The data disks that the task may erase, by the serial number and WWN of the hub's inventory. No other disk is ever erased. */
    disks: z
      .array(z.strictObject({ serial: z.string().min(1).max(64), wwn: z.string().min(1).max(64).nullable() }))
      .max(64),
    plan: z.boolean(),
  }),
  result: z.strictObject({ steps: cleaningStepsNamed(STORAGE_STEPS) }),
  progress: z.strictObject({ step: z.string().max(64), done: z.number().min(0), bytes: z.number().min(0) }),
  errors: {
    /** The agent could not write its state folder, and has changed nothing. */
    not_recorded: "retry",
  },
});
