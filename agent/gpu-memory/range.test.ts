import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CHUNK_BYTES, SAMPLE_BLOCK_BYTES, STREAM_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import { ALLOCATION_SIZES, type Allocation, allocateAll, bytesOf, piecesAt, slicesOf } from "./range.ts";

const MIB = 2 ** 20;

/** A simulated GPU driver with `free` bytes of memory, which never gives more than `most` bytes in one piece. */
function driver(free: number, most = Number.POSITIVE_INFINITY): (bytes: number) => bigint | null {
  let next = 0n;
  let left = free;
  return (bytes) => {
    if (bytes > left || bytes > most) return null;
    left -= bytes;
    next += 2n ** 40n;
    return next;
  };
}
const ranges = fc
  .array(fc.constantFrom(...ALLOCATION_SIZES), { minLength: 1, maxLength: 12 })
  .map((sizes) => sizes.toSorted((a, b) => b - a))
  .map((sizes): Allocation[] => sizes.map((bytes, index) => ({ address: BigInt(index + 1) * 2n ** 40n, bytes })));

describe("allocateAll", () => {
  it.each([0, 1, 2 * MIB - 1, 2 * MIB, 64 * MIB, 999 * MIB, 142_550 * MIB])(
    "takes all but the last bytes of %i bytes",
    (free) => {
      const left = free - bytesOf([...allocateAll(driver(free))]);
      expect(left >= 0 && left < 2 * MIB).toBe(true);
    },
  );

  it("takes all memory also from a driver that gives small pieces only", () => {
    const range = [...allocateAll(driver(300 * MIB, 16 * MIB))];
    expect([bytesOf(range), Math.max(...range.map(({ bytes }) => bytes))]).toEqual([300 * MIB, 16 * MIB]);
  });
});

describe("slicesOf", () => {
  it("covers each byte of the range once, each slice in one allocation and one chunk (generated ranges)", () => {
    fc.assert(
      fc.property(ranges, fc.constantFrom(64 * MIB, 256 * MIB, 4096 * MIB), (range, most) => {
        let offset = 0;
        for (const slice of slicesOf(range, most)) {
          expect(slice.offset).toBe(offset);
          expect(slice.bytes > 0 && slice.bytes <= most).toBe(true);
          expect(slice.chunk * CHUNK_BYTES + slice.counter * STREAM_BLOCK_BYTES).toBe(offset);
          expect(slice.counter * STREAM_BLOCK_BYTES + slice.bytes).toBeLessThanOrEqual(CHUNK_BYTES);
          expect(piecesAt(range, offset, slice.bytes)).toEqual([{ address: slice.address, bytes: slice.bytes }]);
          offset += slice.bytes;
        }
        expect(offset).toBe(bytesOf(range));
      }),
    );
  });
});

describe("piecesAt", () => {
  it("finds each sample block in one allocation, and refuses bytes beyond the range (generated ranges)", () => {
    fc.assert(
      fc.property(ranges, fc.nat(), (range, number) => {
        const blocks = bytesOf(range) / SAMPLE_BLOCK_BYTES;
        expect(piecesAt(range, (number % blocks) * SAMPLE_BLOCK_BYTES, SAMPLE_BLOCK_BYTES).length).toBe(1);
        expect(() => piecesAt(range, blocks * SAMPLE_BLOCK_BYTES, SAMPLE_BLOCK_BYTES)).toThrow(RangeError);
      }),
    );
  });

  it("joins the pieces of several allocations", () => {
    const range = [
      { address: 1000n, bytes: 10 },
      { address: 5000n, bytes: 10 },
      { address: 9000n, bytes: 10 },
    ];
    expect(piecesAt(range, 8, 14)).toEqual([
      { address: 1008n, bytes: 2 },
      { address: 5000n, bytes: 10 },
      { address: 9000n, bytes: 2 },
    ]);
  });
});
