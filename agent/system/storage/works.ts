import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { CleaningEvidence, CleaningOutcome } from "../../../shared/tasks/cleaning-step.ts";
import { DiskSample } from "../../../shared/tasks/sample-disks.ts";
import { defineWork } from "../workers/define-work.ts";

/** The result of one cleaning step; the handler of `node.storage_cleanup` adds the step's name and target. */
export const StepEnd = z.strictObject({
  outcome: CleaningOutcome,
  message: z.string(),
  evidence: CleaningEvidence,
});
export type StepEnd = z.output<typeof StepEnd>;

/** The reason that a cleaning step gives if the data disk of its folder is not mounted. */
export const NOT_MOUNTED = "not_mounted";

/** Any signal ends the emptying of a folder, and its memory use does not grow with the number of files. */
export const EMPTY_FOLDER = defineWork({
  kind: "storage.empty_folder",
  input: z.strictObject({
    path: z.string().startsWith("/"),
    use: z.enum(["temporary", "scratch"]),
    /** Whether a file system must be mounted at `path`, because the agent cannot clean a file system that is not mounted. */
    must_be_mount: z.boolean(),
  }),
  result: StepEnd,
  memoryMax: "512M",
  mayBlock: false,
});

export const FILL_FREE_SPACE = defineWork({
  kind: "storage.fill_free_space",
  input: z.strictObject({ path: z.string().startsWith("/") }),
  result: StepEnd,
  memoryMax: "512M",
  mayBlock: false,
});

/** An unmount may block in the kernel, where no signal ends it. */
export const LEAVE_WEKA = defineWork({
  kind: "storage.leave_weka",
  input: z.strictObject({}),
  result: StepEnd,
  memoryMax: "512M",
  mayBlock: true,
});

export const REMOVE_WEKA_TOKENS = defineWork({
  kind: "storage.remove_weka_tokens",
  input: z.strictObject({}),
  result: StepEnd,
  memoryMax: "512M",
  mayBlock: false,
});

/**
 * A purge tells how it ended, and what became of each file system that the disk had at a mount point before. The handler of `node.storage_cleanup`
 * adds the name of the cleaning step to each result of a purge.
 */
export const PurgeEnd = StepEnd.extend({
  file_systems: z
    .array(StepEnd.extend({ target: z.string() }))
    .max(16)
    .exactOptional(),
});
export type PurgeEnd = z.output<typeof PurgeEnd>;
export type FileSystemEnd = NonNullable<PurgeEnd["file_systems"]>[number];

/**
 * The kind of work that purges one disk by the disk's own command. A disk that does not answer blocks a process in the kernel, where no signal ends
 * it.
 */
export const PURGE_DISK = defineWork({
  kind: "storage.purge_disk",
  input: z.strictObject({
    task_id: TaskId,
    serial: z.string().min(1).max(64),
    wwn: z.string().min(1).max(64).nullable(),
    /**
     * The random number that determines the disk blocks that are marked before the purge and read after it; null if the worker process chooses the
     * number.
     */
    seed: z.string().min(1).max(64).nullable(),
    /**
     * The mount points from which the worker process of a purge may unmount the disk. After the purge, the worker process makes the disk's file
     * systems and mounts them again.
     */
    may_unmount: z.array(z.string().startsWith("/")).max(80),
    /**
     * If `restore_only` is present, the worker process sends no purge command, and only brings back the file systems that a lost worker process did
     * not bring back.
     */
    restore_only: z.literal(true).exactOptional(),
  }),
  result: PurgeEnd,
  memoryMax: "512M",
  mayBlock: true,
});

/** The kind of work that reads random blocks of one disk. A disk that does not answer blocks the process that reads it in the kernel. */
export const SAMPLE_DISK = defineWork({
  kind: "storage.sample_disk",
  input: z.strictObject({
    serial: z.string().min(1).max(64),
    seed: z.string(),
    key: z.string(),
    data_only: z.boolean(),
    again: z.array(z.int().min(0)),
  }),
  result: DiskSample,
  memoryMax: "512M",
  mayBlock: true,
});
