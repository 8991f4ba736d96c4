import { ALLOCATION_STEP_BYTES, STREAM_BLOCK_BYTES } from "../../../shared/gpu-memory.ts";
import type { GpuDevice } from "../../gpu-memory/device.ts";
import { CudaError } from "../../gpu-memory/faults.ts";
import { KERNEL_NAMES, kernelsPtx, THREADS_PER_GROUP } from "../../gpu-memory/kernels.ts";
import type { Cuda } from "./cuda-library.ts";
import { CudaMemory, ON_DEFAULT_STREAM } from "./cuda-memory.ts";

/** The numbers of two options of the driver call cuModuleLoadDataEx: the buffer for the compiler's errors, and the buffer's size. */
const [ERROR_LOG_BUFFER, ERROR_LOG_BYTES] = [5, 6];
const LOG_BYTES = 1_024;
const NO_BLOCK = 2n ** 64n - 1n;

/** A GPU that fills and compares its own memory, with kernels that NVIDIA's driver compiles. */
export class KernelDevice extends CudaMemory implements GpuDevice {
  readonly sliceBytes = 256 * 2 ** 20;
  readonly #key: readonly Buffer[];
  readonly #kernels: Readonly<Record<keyof typeof KERNEL_NAMES, bigint>>;
  /**
   * The address of the GPU memory in which the kernels `check` and `scan` store their two results. The worker process allocates the memory for the
   * results before it allocates the GPU memory that it overwrites.
   */
  readonly #found: bigint;

  constructor(cuda: Cuda, seed: string) {
    super(cuda);
    this.#key = wordsOf(Buffer.from(seed, "hex"));
    const module = loadKernels(cuda);
    const kernel = (kind: keyof typeof KERNEL_NAMES) => cuda.get("cuModuleGetFunction", module, KERNEL_NAMES[kind]);
    this.#kernels = { fill: kernel("fill"), check: kernel("check"), scan: kernel("scan") };
    this.#found = cuda.get("cuMemAlloc_v2", ALLOCATION_STEP_BYTES);
  }

  fill(address: bigint, bytes: number, nonce: Uint8Array, counter: number): void {
    this.#launch("fill", bytes, this.#stream(address, bytes, nonce, counter));
  }

  check(address: bigint, bytes: number, nonce: Uint8Array, counter: number) {
    const found = this.#counting([0n, NO_BLOCK], (at) =>
      this.#launch("check", bytes, [...this.#stream(address, bytes, nonce, counter), long(0n), long(at)]),
    );
    return { blocks: Number(found[0]), first: found[1] === NO_BLOCK ? null : Number(found[1]) };
  }

  scan(address: bigint, bytes: number, marker: number) {
    const found = this.#counting([0n, 0n], (at) =>
      this.#launch("scan", bytes, [long(address), word(bytes / STREAM_BLOCK_BYTES), word(marker), long(at)]),
    );
    return { nonzero: Number(found[0]), marked: Number(found[1]) };
  }

  #stream(address: bigint, bytes: number, nonce: Uint8Array, counter: number): Buffer[] {
    const blocks = bytes / STREAM_BLOCK_BYTES;
    return [long(address), word(blocks), word(counter), ...this.#key, ...wordsOf(Buffer.from(nonce))];
  }

  #counting(begin: readonly [bigint, bigint], launch: (at: bigint) => void): readonly [bigint, bigint] {
    this.write(this.#found, Buffer.concat(begin.map(long)));
    launch(this.#found);
    const out = this.read(this.#found, 16);
    return [out.readBigUInt64LE(0), out.readBigUInt64LE(8)];
  }

  /** Runs a GPU kernel with one thread for each 64 bytes of GPU memory, and waits until the kernel has ended. */
  #launch(kind: keyof typeof KERNEL_NAMES, bytes: number, parameters: readonly Buffer[]): void {
    const groups = Math.ceil(bytes / STREAM_BLOCK_BYTES / THREADS_PER_GROUP);
    const size = [groups, 1, 1, THREADS_PER_GROUP, 1, 1] as const;
    this.cuda.call("cuLaunchKernel", [this.#kernels[kind], ...size, 0, ON_DEFAULT_STREAM, parameters, null]);
    this.cuda.call("cuCtxSynchronize", []);
  }
}

/**
 * Loads the GPU kernels, whose PTX text NVIDIA's driver compiles for the GPU. If the driver refuses the PTX text, the error contains the message of
 * the driver's compiler.
 */
function loadKernels(cuda: Cuda): bigint {
  const log = Buffer.alloc(LOG_BYTES);
  const options = Buffer.concat([word(ERROR_LOG_BUFFER), word(ERROR_LOG_BYTES)]);
  const module = Buffer.alloc(8);
  try {
    cuda.call("cuModuleLoadDataEx", [module, kernelsPtx(), 2, options, [log, BigInt(log.length)]]);
  } catch (error) {
    if (!(error instanceof CudaError)) throw error;
    throw new CudaError(error.call, error.result, log.toString("latin1").split("\0", 1)[0]?.trim().slice(0, 200));
  }
  return module.readBigUInt64LE();
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
function long(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}
const wordsOf = (bytes: Buffer): Buffer[] =>
  Array.from({ length: bytes.length / 4 }, (_, index) => bytes.subarray(index * 4, index * 4 + 4));
