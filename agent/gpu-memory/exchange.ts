import { z } from "zod";
import { GPU_FAULT_CODES } from "../../shared/gpu-faults.ts";
import {
  GpuAnswer,
  GpuRelease,
  GpuUuid,
  MOST_GPU_BYTES,
  MOST_GPUS,
  MOST_SAMPLE_BLOCKS,
  PciAddress,
  SampleBlock,
} from "../../shared/gpu-memory.ts";

/** The order of the agent to the worker of one GPU. */
export const OverwriteOrder = z.strictObject({
  fill_task_id: z.uuid(),
  /** The folder in which agent and worker exchange the commitment, the challenge and the answer. */
  folder: z.string().min(1),
  /** The number of the GPU in the task's order, which is part of the stream's nonces. */
  gpu: z.int().min(0).max(MOST_GPUS),
  uuid: GpuUuid,
  pci_address: PciAddress,
  seed: z.string().regex(/^[0-9a-f]{64}$/),
  marker: z.int().min(1).max(0xffff_ffff).nullable(),
  /**
   * In the pass `mark` the worker writes the marker into all memory and ends at once. The worker of the pass `overwrite` then counts what the driver
   * left of the marker, and overwrites the memory.
   */
  pass: z.enum(["mark", "overwrite"]),
  hold_seconds: z.int().min(1),
});
export type OverwriteOrder = z.output<typeof OverwriteOrder>;

/** The folder of the exchanges, with a folder for each GPU in a folder for each fill task. */
export const EXCHANGE_FOLDER = "/var/lib/muster/agent/gpu-memory";
/** The files of the exchange. One side writes each file, once and completely. */
export const WORKER_FILE = "worker.json";
export const COMMITMENT_FILE = "commitment.json";
export const CHALLENGE_FILE = "challenge.json";
export const ANSWER_FILE = "answer.json";
/** The agent writes this file when the worker must free the memory and end. */
export const END_FILE = "end.json";
export const RELEASE_FILE = "release.json";

/** The process of a worker. The start time distinguishes the process from a later process with the same number. */
export const WorkerProcess = z.strictObject({
  pid: z.int().min(1),
  start_ticks: z.string(),
  boot_id: z.string(),
});
export type WorkerProcess = z.output<typeof WorkerProcess>;

export const GpuChallenge = z.strictObject({
  nonce: z.string().regex(/^[0-9a-f]{32}$/),
  blocks: z.array(SampleBlock).max(MOST_SAMPLE_BLOCKS),
});
export type GpuChallenge = z.output<typeof GpuChallenge>;

export const GpuAnswers = z.strictObject({
  challenge: GpuChallenge,
  answers: z.array(GpuAnswer).max(MOST_SAMPLE_BLOCKS),
});
export type GpuAnswers = z.output<typeof GpuAnswers>;

/** How the work of a GPU's worker ended. `released` means that no challenge came within the hold time, or that the agent ended the work. */
export const OverwriteResult = z.discriminatedUnion("end", [
  z.strictObject({ end: z.literal("answered"), release: GpuRelease }),
  z.strictObject({ end: z.literal("released"), release: GpuRelease }),
  z.strictObject({ end: z.literal("marked"), bytes: z.int().min(0).max(MOST_GPU_BYTES) }),
  z.strictObject({ end: z.literal("fault"), fault: z.enum(GPU_FAULT_CODES), message: z.string().max(1_000) }),
]);
export type OverwriteResult = z.output<typeof OverwriteResult>;
