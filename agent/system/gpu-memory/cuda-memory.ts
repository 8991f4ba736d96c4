import { OUT_OF_MEMORY } from "../../gpu-memory/faults.ts";
import type { Cuda } from "./cuda-library.ts";

export const ON_DEFAULT_STREAM = 0n;

/** The operations on a GPU's memory that need no kernel: allocate, free, set, read and write. */
export class CudaMemory {
  protected readonly cuda: Cuda;
  constructor(cuda: Cuda) {
    this.cuda = cuda;
  }

  allocate(bytes: number): bigint | null {
    const out = Buffer.alloc(8);
    return this.cuda.call("cuMemAlloc_v2", [out, bytes], [OUT_OF_MEMORY]) === 0 ? out.readBigUInt64LE() : null;
  }

  free(address: bigint): void {
    this.cuda.call("cuMemFree_v2", [address]);
  }

  set(address: bigint, bytes: number, word: number): void {
    this.cuda.call("cuMemsetD32Async", [address, word, bytes / 4, ON_DEFAULT_STREAM]);
    this.cuda.call("cuCtxSynchronize", []);
  }

  read(address: bigint, bytes: number): Buffer {
    const to = Buffer.alloc(bytes);
    this.cuda.call("cuMemcpyDtoH_v2", [to, address, bytes]);
    return to;
  }

  protected write(address: bigint, from: Buffer): void {
    this.cuda.call("cuMemcpyHtoD_v2", [address, from, from.length]);
  }
}
