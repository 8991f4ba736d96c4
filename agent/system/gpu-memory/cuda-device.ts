import { ALLOCATION_STEP_BYTES, STREAM_BLOCK_BYTES } from "../../../shared/gpu-memory.ts";
import { pciAddress } from "../../gpu/gpu-state.ts";
import type { GpuDevice, GpuFacts } from "../../gpu-memory/device.ts";
import type { OverwriteOrder } from "../../gpu-memory/exchange.ts";
import { CudaError, GpuFaultError, OUT_OF_MEMORY } from "../../gpu-memory/faults.ts";
import { KERNEL_NAMES, kernelsPtx, THREADS_PER_GROUP } from "../../gpu-memory/kernels.ts";
import { type Cuda, openCuda, readNvmlMemory } from "./cuda-library.ts";

export interface DriverPaths {
  readonly cuda: string;
  readonly nvml: string;
}

/** Numbers of options of cuModuleLoadDataEx: the buffer for the compiler's errors, and the buffer's size. */
const [ERROR_LOG_BUFFER, ERROR_LOG_BYTES] = [5, 6];
const LOG_BYTES = 1_024;
const NO_BLOCK = 2n ** 64n - 1n;
const ON_DEFAULT_STREAM = 0n;

/**
 * Opens the GPU of the order. The environment shows the driver no other GPU. The worker never touches the memory of a GPU whose UUID or PCI address
 * differs from the order.
 */
export function openGpu(order: OverwriteOrder, paths: DriverPaths): { device: GpuDevice; facts: GpuFacts } {
  const cuda = openCuda(paths.cuda);
  cuda.call("cuInit", [0]);
  const count = intOf(cuda, "cuDeviceGetCount");
  if (count !== 1)
    throw new GpuFaultError("gpu_missing", `GPU ${order.uuid}: the driver shows ${count} GPUs for this UUID.`);
  const number = intOf(cuda, "cuDeviceGet", 0);
  const facts = factsOf(cuda, number, order, paths);
  cuda.call("cuCtxSetCurrent", [cuda.get("cuDevicePrimaryCtxRetain", number)]);
  return { device: new CudaDevice(cuda, order.seed), facts };
}

function factsOf(cuda: Cuda, number: number, order: OverwriteOrder, paths: DriverPaths): GpuFacts {
  const bytes = Buffer.alloc(16);
  cuda.call("cuDeviceGetUuid_v2", [bytes, number]);
  const uuid = `GPU-${bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}`;
  const text = Buffer.alloc(32);
  cuda.call("cuDeviceGetPCIBusId", [text, text.length, number]);
  const told = text.toString("latin1").split("\0", 1)[0] ?? "";
  if (uuid !== order.uuid || pciAddress(told) !== pciAddress(order.pci_address))
    throw new GpuFaultError(
      "gpu_mismatch",
      `GPU ${order.uuid} at ${order.pci_address} is ordered, and the driver opened ${uuid} at ${told}.`,
    );
  return {
    uuid,
    pciAddress: order.pci_address,
    cudaVersion: intOf(cuda, "cuDriverGetVersion"),
    visibleBytes: Number(cuda.get("cuDeviceTotalMem_v2", number)),
    memory: readNvmlMemory(paths.nvml, order.uuid),
  };
}

function intOf(cuda: Cuda, name: "cuDeviceGetCount" | "cuDriverGetVersion" | "cuDeviceGet", ...args: number[]): number {
  const out = Buffer.alloc(4);
  cuda.call(name, [out, ...args]);
  return out.readInt32LE();
}

class CudaDevice implements GpuDevice {
  readonly #cuda: Cuda;
  readonly #key: readonly Buffer[];
  readonly #kernels: Readonly<Record<keyof typeof KERNEL_NAMES, bigint>>;
  /** Memory for the two numbers that a kernel counts. The worker takes this piece before all other memory. */
  readonly #found: bigint;

  constructor(cuda: Cuda, seed: string) {
    this.#cuda = cuda;
    this.#key = wordsOf(Buffer.from(seed, "hex"));
    const module = loadKernels(cuda);
    const kernel = (kind: keyof typeof KERNEL_NAMES) => cuda.get("cuModuleGetFunction", module, KERNEL_NAMES[kind]);
    this.#kernels = { fill: kernel("fill"), check: kernel("check"), scan: kernel("scan") };
    this.#found = cuda.get("cuMemAlloc_v2", ALLOCATION_STEP_BYTES);
  }

  allocate(bytes: number): bigint | null {
    const out = Buffer.alloc(8);
    return this.#cuda.call("cuMemAlloc_v2", [out, bytes], [OUT_OF_MEMORY]) === 0 ? out.readBigUInt64LE() : null;
  }

  free(address: bigint): void {
    this.#cuda.call("cuMemFree_v2", [address]);
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

  set(address: bigint, bytes: number, word: number): void {
    this.#cuda.call("cuMemsetD32Async", [address, word, bytes / 4, ON_DEFAULT_STREAM]);
    this.#cuda.call("cuCtxSynchronize", []);
  }

  read(address: bigint, bytes: number): Buffer {
    const to = Buffer.alloc(bytes);
    this.#cuda.call("cuMemcpyDtoH_v2", [to, address, bytes]);
    return to;
  }

  #stream(address: bigint, bytes: number, nonce: Uint8Array, counter: number): Buffer[] {
    const blocks = bytes / STREAM_BLOCK_BYTES;
    return [long(address), word(blocks), word(counter), ...this.#key, ...wordsOf(Buffer.from(nonce))];
  }

  #counting(begin: readonly [bigint, bigint], launch: (at: bigint) => void): readonly [bigint, bigint] {
    this.#cuda.call("cuMemcpyHtoD_v2", [this.#found, Buffer.concat(begin.map(long)), 16]);
    launch(this.#found);
    const out = this.read(this.#found, 16);
    return [out.readBigUInt64LE(0), out.readBigUInt64LE(8)];
  }

  /** Runs a kernel with one thread for each 64 bytes, and waits for its end. */
  #launch(kind: keyof typeof KERNEL_NAMES, bytes: number, parameters: readonly Buffer[]): void {
    const groups = Math.ceil(bytes / STREAM_BLOCK_BYTES / THREADS_PER_GROUP);
    const size = [groups, 1, 1, THREADS_PER_GROUP, 1, 1] as const;
    this.#cuda.call("cuLaunchKernel", [this.#kernels[kind], ...size, 0, ON_DEFAULT_STREAM, parameters, null]);
    this.#cuda.call("cuCtxSynchronize", []);
  }
}

/** The driver compiles the kernels for the GPU. If the driver refuses the text, its compiler tells the reason. */
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
