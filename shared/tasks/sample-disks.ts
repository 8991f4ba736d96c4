import { z } from "zod";
import { TaskId } from "../ids.ts";
import { defineTask } from "./define-task.ts";

/** The number of blocks of a disk that the agent describes by digests, so that a later task can tell whether the blocks are unchanged. */
export const MOST_PRINTS = 64;
export const MOST_SAMPLED_DISKS = 64;
export const DISK_BLOCK_BYTES = 4096;

const Random = z.string().regex(/^[0-9a-f]{64}$/);
const Block = z.int().min(0);
/**
 * A block's digest is the first 96 bits of a keyed SHA-256 of the block. Nobody without the key in the hub's order can test a guess about the content
 * of a disk block.
 */
const Print = z.strictObject({ block: Block, digest: z.string().regex(/^[A-Za-z0-9_-]{16}$/) });
const Count = z.int().min(0).max(10_000);

/** The agent read some blocks of a disk, and counts them by their content. */
export const DiskSample = z.strictObject({
  zeros: Count,
  /** The number of blocks of the disk that are filled with one byte other than zero, as some disks return after an erase. */
  one_byte: Count,
  /** The number of blocks of the disk that hold data, or the noise that a disk returns after its encryption key was exchanged. */
  data: Count,
  unreadable: Count,
  prints: z.array(Print).max(MOST_PRINTS),
  /**
   * The digests of the disk blocks that the hub's order names by their numbers. The digest of a disk block that the agent could not read is missing.
   */
  again: z.array(Print).max(MOST_PRINTS),
});
export type DiskSample = z.output<typeof DiskSample>;

export const SampledDisk = z.strictObject({
  serial: z.string().max(64).nullable(),
  model: z.string().max(64),
  wwn: z.string().max(128).nullable(),
  bytes: z.number().min(0),
  /** True if the running system has its root, its boot files or its swap on the disk. */
  holds_system: z.boolean(),
  /** `sample` is null if the agent read nothing of the disk. */
  sample: DiskSample.nullable(),
  /** Why the agent read nothing of the disk; empty if the agent read blocks. */
  detail: z.string().max(200),
});
export type SampledDisk = z.output<typeof SampledDisk>;

/**
 * The task `node.sample_disks` reads random blocks of the host's disks and changes nothing (architecture 14.11). A block whose digest is the same
 * after a deploy as before the release shows that the erase did not reach it.
 */
export const sampleDisks = defineTask({
  type: "node.sample_disks",
  changes: "nothing",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({
    /** The random number by which the agent chooses the blocks of a disk that it reads. */
    seed: Random,
    /** The key of the keyed SHA-256 by which the agent computes the digests of disk blocks. */
    key: Random,
    data_only: z.boolean(),
    /** Blocks that the agent reads in addition to the random ones, because an earlier task reported their digests. */
    again: z
      .array(z.strictObject({ serial: z.string().min(1).max(64), blocks: z.array(Block).max(MOST_PRINTS) }))
      .max(MOST_SAMPLED_DISKS),
  }),
  result: z.strictObject({
    boot_id: z.string().min(1).max(64),
    disks: z.array(SampledDisk).max(MOST_SAMPLED_DISKS),
    /** The number of disks of the host that are not in the list `disks`. */
    more: z.int().min(0),
  }),
  progress: z.strictObject({ step: z.string().max(64), done: z.number().min(0), bytes: z.number().min(0) }),
  errors: {
    /** The task `node.sample_disks` has read no disk, because the agent could not write to its own state folder. */
    not_recorded: "retry",
  },
});

const MOST_KNOWN_DISKS = 512;
/** Before a release, the hub stores which task read the host's disks, and the serial numbers of the disks that the host must have. */
export const DisksBefore = z.object({ task_id: TaskId.nullable(), serials: z.array(z.string()).max(MOST_KNOWN_DISKS) });
export type DisksBefore = z.output<typeof DisksBefore>;
/**
 * The comparison of the disks after a release in MAAS has at most one finding for each disk from before the release and for each disk that the new
 * system shows.
 */
export const MOST_COMPARED_DISKS = MOST_KNOWN_DISKS + 2 * MOST_SAMPLED_DISKS;
