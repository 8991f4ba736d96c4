import type { KernelKind } from "../../gpu-memory/kernel-calls.ts";

/**
 * The operations in which the GPU drivers of the vendors differ. A call of `DriverPort` returns when the GPU has done the work, and throws
 * `DriverError` if the GPU's driver refuses the call.
 */
export interface DriverPort {
  /** Reserves GPU memory, or returns null if the GPU's driver has no free piece of the given size. */
  allocate(bytes: number): bigint | null;
  /** Reserves GPU memory that the worker process needs, and throws `DriverError` if the GPU's driver has no free piece. */
  take(bytes: number): bigint;
  free(address: bigint): void;
  set(address: bigint, bytes: number, word: number): void;
  read(address: bigint, bytes: number): Buffer;
  write(address: bigint, from: Buffer): void;
  /**
   * Lets the vendor's compiler compile the GPU kernels, and loads the kernels. If the compiler refuses the kernels, the fault of the thrown
   * `DriverError` is `kernels_refused`.
   */
  loadKernels(): LaunchKernel;
}

export type LaunchKernel = (kind: KernelKind, groups: number, parameters: readonly Buffer[]) => void;
