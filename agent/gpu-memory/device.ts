/**
 * The calls by which a worker process reads and writes the memory of one GPU. Each call of `GpuDevice` returns when the GPU has done the work, and
 * throws `DriverError` if the GPU's driver refuses the call.
 */
export interface GpuDevice {
  /** The most GPU memory, in bytes, that one call of `GpuDevice` may work on, so that each call ends within a second. */
  readonly sliceBytes: number;
  /** Reserves GPU memory, and returns null if the GPU's driver has no free piece of `bytes` bytes. */
  allocate(bytes: number): bigint | null;
  free(address: bigint): void;
  /** Writes the ChaCha20 stream of `nonce` into GPU memory, from the stream's block `counter` on. The argument `bytes` must be a multiple of 64. */
  fill(address: bigint, bytes: number, nonce: Uint8Array, counter: number): void;
  /** Compares GPU memory with the ChaCha20 stream of `nonce`. `first` is the distance in bytes from `address` to the first block that differs. */
  check(address: bigint, bytes: number, nonce: Uint8Array, counter: number): { blocks: number; first: number | null };
  /** Counts the units of 16 bytes in GPU memory that are not zero, and the units that consist of the word `marker`. */
  scan(address: bigint, bytes: number, marker: number): { nonzero: number; marked: number };
  /** Fills `bytes` bytes of GPU memory at `address` with the word `word`. */
  set(address: bigint, bytes: number, word: number): void;
  read(address: bigint, bytes: number): Buffer;
}

/** The facts that the GPU's driver tells about the opened GPU. */
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
  /**
   * Why the GPU's driver did not compile the GPU kernels, so that the host's processor computes in place of the GPU. `kernelsError` is null if the
   * GPU's driver compiled the GPU kernels.
   */
  readonly kernelsError: string | null;
  /**
   * How many bytes of the GPU's own memory are in use according to the kernel, or null if the kernel does not tell. A driver that ran out of GPU memory
   * could give memory of the host to the worker process, whose overwrite would show nothing about the GPU.
   */
  usedBytes(): number | null;
}
