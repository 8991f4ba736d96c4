/** The calls by which the passes use one GPU. Each call returns when the GPU has done the work, and throws `CudaError` if the driver refuses. */
export interface GpuDevice {
  /** The most memory that one call works on, so that a call ends within a second. */
  readonly sliceBytes: number;
  /** Reserves memory. Null means that the driver has no piece of that size left. */
  allocate(bytes: number): bigint | null;
  free(address: bigint): void;
  /** Writes the ChaCha20 stream of `nonce` from block `counter` on. The memory is a multiple of 64 bytes. */
  fill(address: bigint, bytes: number, nonce: Uint8Array, counter: number): void;
  /** Compares the memory with the stream. `first` is the distance of the first different block from `address`. */
  check(address: bigint, bytes: number, nonce: Uint8Array, counter: number): { blocks: number; first: number | null };
  /** Counts units of 16 bytes that are not zero, and units that consist of the word `marker`. */
  scan(address: bigint, bytes: number, marker: number): { nonzero: number; marked: number };
  /** Writes the word into all memory of the piece. */
  set(address: bigint, bytes: number, word: number): void;
  read(address: bigint, bytes: number): Buffer;
}

/** What the driver says about the opened GPU. */
export interface GpuFacts {
  readonly uuid: string;
  readonly pciAddress: string;
  readonly cudaVersion: number;
  readonly visibleBytes: number;
  /** What NVIDIA's management library says, or null if the library did not answer. */
  readonly memory: { readonly totalBytes: number; readonly reservedBytes: number } | null;
}

export interface OpenedGpu {
  readonly device: GpuDevice;
  readonly facts: GpuFacts;
  /** Why the driver did not compile the kernels, so that the host computes in their place. Null means that the GPU computes. */
  readonly kernelsError: string | null;
}
