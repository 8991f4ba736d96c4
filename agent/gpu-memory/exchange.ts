import { z } from "zod";
import { GPU_FAULT_CODES } from "../../shared/gpu-faults.ts";
import {
  GpuAnswer,
  GpuClear,
  GpuRelease,
  GpuUuid,
  MOST_GPU_BYTES,
  MOST_GPUS,
  MOST_SAMPLE_BLOCKS,
  PciAddress,
  SampleBlock,
} from "../../shared/gpu-memory.ts";

export const OverwriteOrder = z.strictObject({
  fill_task_id: z.uuid(),
  folder: z.string().min(1),
  gpu: z.int().min(0).max(MOST_GPUS),
  vendor: z.enum(["nvidia", "amd"]),
  uuid: GpuUuid,
  pci_address: PciAddress,
  seed: z.string().regex(/^[0-9a-f]{64}$/),
  marker: z.int().min(1).max(0xffff_ffff).nullable(),
  /**
   * In the pass `mark`, a worker process fills the GPU's memory with the hub's random number `marker` and ends. In the pass `overwrite`, another
   * worker process counts the copies of the random number `marker` that are left in the GPU's memory, and then overwrites the memory.
   */
  pass: z.enum(["mark", "overwrite"]),
  hold_seconds: z.int().min(1),
});
export type OverwriteOrder = z.output<typeof OverwriteOrder>;

/**
 * The folder in which the agent and its worker processes exchange files: it has a folder for each task `node.gpu_fill`, with one folder for each GPU.
 */
export const EXCHANGE_FOLDER = "/var/lib/muster/agent/gpu-memory";
/** Each file that the agent and a worker process exchange is written by only one of them, once and completely. */
export const WORKER_FILE = "worker.json";
export const COMMITMENT_FILE = "commitment.json";
export const CHALLENGE_FILE = "challenge.json";
export const ANSWER_FILE = "answer.json";
/** The file by which the agent tells a worker process to free its GPU's memory and end. */
export const END_FILE = "end.json";
export const RELEASE_FILE = "release.json";

/** The recorded start time distinguishes the worker process from a later process with the same pid. */
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

/**
 * How the work of a worker process on a GPU's memory ended. The value `released` of `end` means that the worker process freed the GPU's memory
 * without answering a challenge of the hub. The value `cleared` of `end` means that the kernel's driver cleared the GPU's memory, and that the worker
 * process holds none of it.
 */
export const OverwriteResult = z.discriminatedUnion("end", [
  z.strictObject({ end: z.literal("answered"), release: GpuRelease }),
  z.strictObject({ end: z.literal("released"), release: GpuRelease }),
  z.strictObject({ end: z.literal("cleared"), clear: GpuClear }),
  z.strictObject({ end: z.literal("marked"), bytes: z.int().min(0).max(MOST_GPU_BYTES) }),
  z.strictObject({ end: z.literal("fault"), fault: z.enum(GPU_FAULT_CODES), message: z.string().max(1_000) }),
]);
export type OverwriteResult = z.output<typeof OverwriteResult>;
