import { z } from "zod";

/**
 * The stream that the agent writes into GPU memory and that the hub computes again. The memory that a worker holds is numbered as one range of bytes:
 * its allocations, in their order. The stream is ChaCha20 with the task's seed as its key, and has one nonce for each chunk of each GPU.
 */
export const CHUNK_BYTES = 2 ** 30;
/** The part of the range that one answer of a challenge covers. A chunk contains whole sample blocks. */
export const SAMPLE_BLOCK_BYTES = 64 * 1024;
/** The length of a ChaCha20 block, which is the unit in which the check counts mismatches. */
export const STREAM_BLOCK_BYTES = 64;
/** The unit in which the scan counts memory that is not zero. */
export const SCAN_UNIT_BYTES = 16;
/** Each allocation is a multiple of this size, which is the granularity of the driver. */
export const ALLOCATION_STEP_BYTES = 2 * 2 ** 20;

/** More memory than any GPU has. A larger number in an answer of a host is wrong. */
export const MOST_GPU_BYTES = 2 ** 42;
export const MOST_GPUS = 16;
export const MOST_SAMPLE_BLOCKS = 64;

/**
 * The nonce of a chunk: the number of the GPU in the task's order, and the number of the chunk in the GPU's range. The seed belongs to one task, so
 * no nonce is used twice with one key.
 */
export function chunkNonce(gpu: number, chunk: number): Uint8Array {
  const nonce = new Uint8Array(12);
  const view = new DataView(nonce.buffer);
  view.setUint32(0, gpu, true);
  view.setBigUint64(4, BigInt(chunk), true);
  return nonce;
}

/** The number of sample blocks in a range. The last bytes of a range that is no multiple of a sample block belong to no sample block. */
export const sampleBlocksIn = (bytes: number): number => Math.floor(bytes / SAMPLE_BLOCK_BYTES);

/** The text before the memory's bytes in the message of an answer. The text binds the answer to the task, the GPU and the place. */
export const answerPrefix = (fillTaskId: string, uuid: string, block: number): string =>
  `${fillTaskId}|${uuid}|${block}|`;

const Bytes = z.int().min(0).max(MOST_GPU_BYTES);
const Count = z.int().min(0).max(MOST_GPU_BYTES);
const Milliseconds = z.int().min(0).max(86_400_000);
export const GpuUuid = z.string().regex(/^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
/** The PCI address of a GPU in the form of the Linux kernel, for example `0000:3b:00.0`. */
export const PciAddress = z.string().regex(/^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$/);

/**
 * The statement of a worker that has filled and checked the memory of a GPU, and does not know the questions of the challenge yet. The worker still
 * holds the memory.
 */
export const GpuCommitment = z.strictObject({
  uuid: GpuUuid,
  pci_address: PciAddress,
  /** The version of the driver's CUDA interface, for example 13000. */
  cuda_version: z.int().min(0).max(1_000_000),
  /** How many bytes the worker got from the driver, filled and checked. */
  allocated_bytes: Bytes,
  /** The memory that NVIDIA's management library reports for the GPU. Null if the library did not answer. */
  total_bytes: Bytes.nullable(),
  /** The part of `total_bytes` that the driver keeps for itself. */
  reserved_bytes: Bytes.nullable(),
  /** The memory that the CUDA driver reports. The driver reports less than the management library. */
  visible_bytes: Bytes,
  /** Why the GPU did not compute, so that the host filled and compared the memory by copies. Null if the GPU computed. */
  kernels_error: z.string().max(256).nullable(),
  /** How many units of 16 bytes were not zero before the worker wrote anything. */
  prefill_nonzero_units: Count,
  /** How many units consisted of the marker of an earlier pass. Null if the order has no marker. */
  prefill_marker_units: Count.nullable(),
  /** How many blocks of 64 bytes differed from the stream. */
  mismatched_blocks: Count,
  /** The place of the first difference, as a number of bytes in the worker's range. */
  first_mismatch: Bytes.nullable(),
  open_ms: Milliseconds,
  allocate_ms: Milliseconds,
  scan_ms: Milliseconds,
  fill_ms: Milliseconds,
  check_ms: Milliseconds,
});
export type GpuCommitment = z.output<typeof GpuCommitment>;

/** The statement of a worker that has zeroed and freed the memory of a GPU. */
export const GpuRelease = z.strictObject({
  zeroed_bytes: Bytes,
  /** How many units of 16 bytes were not zero after the worker had zeroed the memory. */
  nonzero_units: Count,
  answer_ms: Milliseconds,
  zero_ms: Milliseconds,
  scan_ms: Milliseconds,
});
export type GpuRelease = z.output<typeof GpuRelease>;

/** The number of a sample block in the range of a GPU. */
export const SampleBlock = z
  .int()
  .min(0)
  .max(MOST_GPU_BYTES / SAMPLE_BLOCK_BYTES);
/** An HMAC-SHA256 in base64url. */
export const GpuAnswer = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
