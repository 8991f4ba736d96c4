import { z } from "zod";

/**
 * The agent overwrites GPU memory with a pseudo-random stream of bytes, which the hub can compute as well. A worker is a process of the agent that
 * holds the whole free memory of one GPU; it numbers the memory's bytes from 0 on. The pseudo-random stream that fills GPU memory is ChaCha20 with
 * the task's seed as its key. Each chunk (1 GiB) of a GPU's memory has its own ChaCha20 nonce.
 */
export const CHUNK_BYTES = 2 ** 30;
/**
 * The length of a sample block, the part of a GPU's memory that one answer to the hub's challenge covers. Each chunk of a GPU's memory contains a
 * whole number of sample blocks.
 */
export const SAMPLE_BLOCK_BYTES = 64 * 1024;
/** The length of a ChaCha20 block, the unit in which a worker counts differences between a GPU's memory and the byte stream written to it. */
export const STREAM_BLOCK_BYTES = 64;
/** The unit in which a worker counts GPU memory that is not zero. */
export const SCAN_UNIT_BYTES = 16;
/** Each allocation of GPU memory is a multiple of 2 MiB, which is the granularity of the GPU drivers. */
export const ALLOCATION_STEP_BYTES = 2 * 2 ** 20;

/** A number of bytes that no GPU has as memory. If a host reports more than this number of bytes for a GPU, the report is wrong. */
export const MOST_GPU_BYTES = 2 ** 42;
export const MOST_GPUS = 16;
export const MOST_SAMPLE_BLOCKS = 64;

/**
 * The ChaCha20 nonce for a chunk of GPU memory consists of the GPU's number in the task's order and the chunk's number in the GPU's memory. Each task
 * has a seed of its own as the ChaCha20 key, so no nonce is used twice with one key.
 */
export function chunkNonce(gpu: number, chunk: number): Uint8Array {
  const nonce = new Uint8Array(12);
  const view = new DataView(nonce.buffer);
  view.setUint32(0, gpu, true);
  view.setBigUint64(4, BigInt(chunk), true);
  return nonce;
}

/**
 * Returns how many whole sample blocks of `SAMPLE_BLOCK_BYTES` bytes a GPU's memory of the given size has. The hub never asks a worker about the
 * bytes of GPU memory after the last whole sample block.
 */
export const sampleBlocksIn = (bytes: number): number => Math.floor(bytes / SAMPLE_BLOCK_BYTES);

/**
 * A worker answers the hub's challenge with an HMAC over a prefix and over the bytes of the challenged sample block. The prefix of the HMAC in a
 * worker's answer names the task, the GPU and the sample block, so that the answer is valid only for these.
 */
export const answerPrefix = (fillTaskId: string, uuid: string, block: number): string =>
  `${fillTaskId}|${uuid}|${block}|`;

const Bytes = z.int().min(0).max(MOST_GPU_BYTES);
const Count = z.int().min(0).max(MOST_GPU_BYTES);
const Milliseconds = z.int().min(0).max(86_400_000);
export const NvidiaUuid = z.string().regex(/^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
/** The UUID of an AMD GPU: the 64 bits of the file `unique_id` of the amdgpu driver, in the form of AMD's runtime ROCr. */
export const AmdUuid = z.string().regex(/^GPU-(?!0{16})[0-9a-f]{16}$/);
export const GpuUuid = z.union([NvidiaUuid, AmdUuid]);
/** The PCI address of a GPU in the form of the Linux kernel, for example `0000:3b:00.0`. */
export const PciAddress = z.string().regex(/^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$/);

/**
 * With its commitment, a worker reports that it has filled and checked a GPU's memory, before the hub chooses sample blocks for its challenge. After
 * a worker has sent its commitment, it still holds the GPU's memory.
 */
export const GpuCommitment = z.strictObject({
  uuid: GpuUuid,
  pci_address: PciAddress,
  /** The version of the CUDA interface of the NVIDIA driver, for example 13000. `cuda_version` is null for an AMD GPU. */
  cuda_version: z.int().min(0).max(1_000_000).nullable(),
  /** The version of AMD's library HIP, for example 60342134 for HIP 6.3.42134. `hip_version` is null for an NVIDIA GPU. */
  hip_version: z.int().min(0).max(2_147_483_647).nullable().default(null),
  /** How many bytes of GPU memory the worker got from the driver, filled and checked. */
  allocated_bytes: Bytes,
  /**
   * How much memory the GPU has according to NVIDIA's management library, or according to the amdgpu driver. `total_bytes` is null if neither
   * NVIDIA's library nor the amdgpu driver told the size of the GPU's memory.
   */
  total_bytes: Bytes.nullable(),
  /** The part of the GPU's memory that NVIDIA's driver keeps for itself, or null if the driver did not tell it. */
  reserved_bytes: Bytes.nullable(),
  /** How much memory CUDA or HIP reports for the GPU. CUDA reports less memory for a GPU than NVIDIA's management library. */
  visible_bytes: Bytes,
  /**
   * Why the GPU could not run the worker's kernels (programs on the GPU), so that the worker filled and compared the memory by copies.
   * `kernels_error` is null if the GPU ran the worker's kernels.
   */
  kernels_error: z.string().max(256).nullable(),
  /** How many units of 16 bytes of the GPU's memory were not zero before the worker wrote anything. */
  prefill_nonzero_units: Count,
  /**
   * How many units of 16 bytes of the GPU's memory still held the number `marker`, with which an earlier worker of the same task had filled the
   * memory. `prefill_marker_units` is null if the task's order has no number `marker`.
   */
  prefill_marker_units: Count.nullable(),
  /** How many blocks of 64 bytes of the GPU's memory differed from the ChaCha20 stream that the worker had written. */
  mismatched_blocks: Count,
  /** The offset in bytes of the first difference between the GPU's memory and the ChaCha20 stream that the worker wrote. */
  first_mismatch: Bytes.nullable(),
  open_ms: Milliseconds,
  allocate_ms: Milliseconds,
  scan_ms: Milliseconds,
  fill_ms: Milliseconds,
  check_ms: Milliseconds,
});
export type GpuCommitment = z.output<typeof GpuCommitment>;

/** With its last report, a worker says that it has zeroed and freed the memory of a GPU. */
export const GpuRelease = z.strictObject({
  zeroed_bytes: Bytes,
  /** How many units of 16 bytes of the GPU's memory were not zero after the worker's zeroing. */
  nonzero_units: Count,
  answer_ms: Milliseconds,
  zero_ms: Milliseconds,
  scan_ms: Milliseconds,
});
export type GpuRelease = z.output<typeof GpuRelease>;

/**
 * A worker's report that the kernel's amdgpu driver has cleared the memory of a GPU, on a host without AMD's library HIP. The amdgpu driver clears
 * each buffer when the worker process creates it; the worker process read a sample of its buffers.
 */
export const GpuClear = z.strictObject({
  uuid: AmdUuid,
  pci_address: PciAddress,
  /**
   * How many bytes of GPU memory the worker process held in buffers. The amdgpu driver's count of used GPU memory grew by at least the bytes of the
   * worker's buffers.
   */
  cleared_bytes: Bytes,
  /** How much memory the GPU has according to the amdgpu driver. */
  total_bytes: Bytes,
  /** How much of the GPU's memory the host's processor can read, or null if the amdgpu driver does not tell. */
  bar_bytes: Bytes.nullable(),
  /**
   * How many bytes of its GPU buffers the worker process has read back. `sampled_bytes` is 0 if the host's processor cannot read all memory of the
   * GPU.
   */
  sampled_bytes: Bytes,
  /** How many units of 16 bytes in the sample of cleared GPU memory were not zero. */
  nonzero_units: Count,
  allocate_ms: Milliseconds,
  sample_ms: Milliseconds,
});
export type GpuClear = z.output<typeof GpuClear>;

/**
 * The smallest sample of cleared GPU memory, in bytes. A worker process reads the whole memory of a GPU that has less memory than the smallest
 * sample.
 */
export const clearSampleOf = (bytes: number): number => Math.min(bytes, 64 * 2 ** 20);

/** The number of a sample block in the memory of a GPU, from 0 on. */
export const SampleBlock = z
  .int()
  .min(0)
  .max(MOST_GPU_BYTES / SAMPLE_BLOCK_BYTES);
/** A worker proves the content of one sample block of GPU memory by an HMAC-SHA256 over the block, in base64url. */
export const GpuAnswer = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
