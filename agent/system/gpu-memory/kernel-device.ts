import { ALLOCATION_STEP_BYTES, STREAM_BLOCK_BYTES } from "../../../shared/gpu-memory.ts";
import type { GpuDevice } from "../../gpu-memory/device.ts";
import { type KernelKind, THREADS_PER_GROUP } from "../../gpu-memory/kernel-calls.ts";
import { DeviceMemory } from "./device-memory.ts";
import type { DriverPort, LaunchKernel } from "./driver-port.ts";

const NO_BLOCK = 2n ** 64n - 1n;

/** A GPU that fills and compares its own memory, by GPU kernels that the vendor's compiler compiled. */
export class KernelDevice extends DeviceMemory implements GpuDevice {
  readonly sliceBytes = 256 * 2 ** 20;
  readonly #key: readonly Buffer[];
  readonly #kernel: LaunchKernel;
  /**
   * The address of the GPU memory in which the kernels `check` and `scan` store their two results. The worker process allocates the memory for the
   * results of the GPU kernels before it allocates the GPU memory that it overwrites.
   */
  readonly #found: bigint;

  constructor(port: DriverPort, seed: string) {
    super(port);
    this.#key = wordsOf(Buffer.from(seed, "hex"));
    this.#kernel = port.loadKernels();
    this.#found = port.take(ALLOCATION_STEP_BYTES);
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

  #launch(kind: KernelKind, bytes: number, parameters: readonly Buffer[]): void {
    this.#kernel(kind, Math.ceil(bytes / STREAM_BLOCK_BYTES / THREADS_PER_GROUP), parameters);
  }
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
