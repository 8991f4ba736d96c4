import { ALLOCATION_STEP_BYTES, CHUNK_BYTES, STREAM_BLOCK_BYTES } from "../../shared/gpu-memory.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/**
 * The sizes, in bytes, of the pieces of GPU memory that a worker process asks for. NVIDIA's drivers of all versions can clear a piece of 4 GiB of GPU
 * memory within the driver's own time limit. To clear a piece of GPU memory larger than 4 GiB, NVIDIA's driver may need more time than its own time
 * limit allows.
 */
export const ALLOCATION_SIZES = [4 * GIB, GIB, 256 * MIB, 64 * MIB, 16 * MIB, ALLOCATION_STEP_BYTES] as const;

export interface Allocation {
  readonly address: bigint;
  readonly bytes: number;
}

export interface Slice {
  readonly address: bigint;
  readonly bytes: number;
  /** The distance in bytes from the start of all allocated GPU memory to the start of this slice. */
  readonly offset: number;
  readonly chunk: number;
  /** The number of the slice's first ChaCha20 block, counted from 0 at the start of the slice's chunk of GPU memory. */
  readonly counter: number;
}

/** Takes GPU memory in pieces, the largest first, until NVIDIA's driver has no piece of the smallest size left. */
export function* allocateAll(
  allocate: (bytes: number) => bigint | null,
  sizes: readonly number[] = ALLOCATION_SIZES,
): Generator<Allocation> {
  for (const bytes of sizes)
    for (let address = allocate(bytes); address !== null; address = allocate(bytes)) yield { address, bytes };
}

export const bytesOf = (range: readonly Allocation[]): number => range.reduce((sum, { bytes }) => sum + bytes, 0);

export function* slicesOf(range: readonly Allocation[], most: number): Generator<Slice> {
  let offset = 0;
  for (const { address, bytes } of range)
    for (let done = 0; done < bytes; ) {
      const inChunk = offset % CHUNK_BYTES;
      const length = Math.min(most, bytes - done, CHUNK_BYTES - inChunk);
      yield {
        address: address + BigInt(done),
        bytes: length,
        offset,
        chunk: Math.floor(offset / CHUNK_BYTES),
        counter: inChunk / STREAM_BLOCK_BYTES,
      };
      done += length;
      offset += length;
    }
}

export function piecesAt(range: readonly Allocation[], offset: number, bytes: number): Allocation[] {
  const pieces: Allocation[] = [];
  let begin = 0;
  for (const one of range) {
    const from = Math.max(offset, begin);
    const to = Math.min(offset + bytes, begin + one.bytes);
    if (from < to) pieces.push({ address: one.address + BigInt(from - begin), bytes: to - from });
    begin += one.bytes;
  }
  if (bytesOf(pieces) !== bytes) throw new RangeError(`The range has no ${bytes} bytes at ${offset}.`);
  return pieces;
}
