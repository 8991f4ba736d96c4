/**
 * The calls by which a worker process reads and writes the memory of one GPU. A call of `GpuDevice` returns when the GPU has done the work, and
 * throws `DriverError` if the GPU's driver refuses the call.
 */
export interface GpuDevice {
  /** The most GPU memory, in bytes, that one call may work on, so that the call ends within a second. */
  readonly sliceBytes: number;
  /** Reserves GPU memory, or returns null if the GPU's driver has no free piece of the given size. */
  allocate(bytes: number): bigint | null;
  free(address: bigint): void;
  /**
   * Writes the ChaCha20 stream of `nonce` into GPU memory, from the block `counter` of the stream on. The number of bytes that `fill` writes must be
   * a multiple of 64.
   */
  fill(address: bigint, bytes: number, nonce: Uint8Array, counter: number): void;
  /**
   * Compares GPU memory with the ChaCha20 stream of a nonce. In the result of `check`, `first` is the distance in bytes from `address` to the first
   * block that differs.
   */
  check(address: bigint, bytes: number, nonce: Uint8Array, counter: number): { blocks: number; first: number | null };
  scan(address: bigint, bytes: number, marker: number): { nonzero: number; marked: number };
  set(address: bigint, bytes: number, word: number): void;
  read(address: bigint, bytes: number): Buffer;
}

export interface GpuFacts {
  readonly uuid: string;
  readonly pciAddress: string;
  readonly cudaVersion: number | null;
  readonly hipVersion: number | null;
  readonly visibleBytes: number;
  /** The memory sizes that NVIDIA's management library or the amdgpu driver reports, or null if neither answered. */
  readonly memory: { readonly totalBytes: number; readonly reservedBytes: number | null } | null;
}

export interface OpenedGpu {
  readonly device: GpuDevice;
  readonly facts: GpuFacts;
  /** Why the GPU's driver did not compile the GPU kernels, in which case the host's processor computes instead; null if the driver compiled them. */
  readonly kernelsError: string | null;
  /**
   * How many bytes of the GPU's own memory are in use according to the kernel, or null if the kernel does not report it. A driver without free GPU
   * memory could give memory of the host to the worker process. An overwrite of host memory would show nothing about the GPU.
   */
  usedBytes(): number | null;
}
