import { z } from "zod";
import { TaskId } from "../ids.ts";
import { defineTask } from "./define-task.ts";

/** How many blocks of a disk the agent describes by a digest, so that a later task can tell whether the blocks are unchanged. */
export const MOST_PRINTS = 64;
export const MOST_SAMPLED_DISKS = 64;
export const DISK_BLOCK_BYTES = 4096;

const Random = z.string().regex(/^[0-9a-f]{64}$/);
const Block = z.int().min(0);
/** The first 96 bits of a keyed SHA-256 of a block. Without the key of the hub's order, nobody can test a guess about the block. */
const Print = z.strictObject({ block: Block, digest: z.string().regex(/^[A-Za-z0-9_-]{16}$/) });
const Count = z.int().min(0).max(10_000);

/** What the blocks of a disk looked like that the agent read. */
export const DiskSample = z.strictObject({
  zeros: Count,
  /** The number of blocks that hold one byte other than zero, as some disks return after an erase. */
  one_byte: Count,
  /** The number of blocks with other content: data, or the noise that a disk returns after its key was exchanged. */
  data: Count,
  unreadable: Count,
  /** Digests of some blocks with content. */
  prints: z.array(Print).max(MOST_PRINTS),
  /** The digests of the blocks that the order names for this disk. An unreadable block is missing. */
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
  /** What the agent read of the disk, or null if it read nothing. */
  sample: DiskSample.nullable(),
  /** Why the agent read nothing of the disk, or an empty text. */
  detail: z.string().max(200),
});
export type SampledDisk = z.output<typeof SampledDisk>;

/**
 * Reads random blocks of the host's disks (architecture 14.11). The task only reads. Before a release the prints describe what was on the disks, and
 * after the deploy the same blocks show whether the erase reached the disks.
 */
export const sampleDisks = defineTask({
  type: "node.sample_disks",
  lane: "work",
  leaseSeconds: 300,
  destructive: false,
  worksOutside: true,
  input: z.strictObject({
    /** The random number from which the blocks follow. */
    seed: Random,
    /** The key of the digests. */
    key: Random,
    /** Whether the agent leaves out disks that hold the running system. */
    data_only: z.boolean(),
    /** Blocks of which an earlier task reported digests. */
    again: z
      .array(z.strictObject({ serial: z.string().min(1).max(64), blocks: z.array(Block).max(MOST_PRINTS) }))
      .max(MOST_SAMPLED_DISKS),
  }),
  result: z.strictObject({
    boot_id: z.string().min(1).max(64),
    disks: z.array(SampledDisk).max(MOST_SAMPLED_DISKS),
    /** How many disks the host has beyond those of the list. */
    more: z.int().min(0),
  }),
  progress: z.strictObject({ step: z.string().max(64), done: z.number().min(0), bytes: z.number().min(0) }),
  errors: {
    /** The agent could not write to its own state folder, and has read nothing. */
    not_recorded: "retry",
  },
});

const MOST_KNOWN_DISKS = 512;
/** What the hub remembers of the disks before a release: the task that read them, and the serial numbers that the host must have. */
export const DisksBefore = z.object({ task_id: TaskId.nullable(), serials: z.array(z.string()).max(MOST_KNOWN_DISKS) });
export type DisksBefore = z.output<typeof DisksBefore>;
/** Each disk from before the release and each disk that the new system shows has at most one finding. */
export const MOST_COMPARED_DISKS = MOST_KNOWN_DISKS + 2 * MOST_SAMPLED_DISKS;
