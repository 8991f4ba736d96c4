import { describe, expect, it } from "vitest";
import { BLOCK_BYTES, drawBlocks } from "../../storage/purge-sample.ts";
import { writeMarkers } from "./purge-marks.ts";

const DRAWN = { seed: "ab".repeat(32), blocks: 1_000 };

/**
 * The test's disk has a cache: until a flush, a read of a block shows the block's content from before the write. The test's disk loses what a program
 * writes to the block `lost`.
 */
function cachedDisk(lost: number | null) {
  const [kept, cache] = [new Map<number, Buffer>(), new Map<number, Buffer>()];
  return {
    read: (block: number): Buffer | null => kept.get(block) ?? Buffer.alloc(BLOCK_BYTES),
    write: (block: number, bytes: Buffer): void => void cache.set(block, Buffer.from(bytes)),
    flush: (): void => {
      for (const [block, bytes] of cache) if (block !== lost) kept.set(block, bytes);
    },
  };
}

describe("the markers of a disk", () => {
  it("count only after a flush, when all of them are read back", () => {
    expect(writeMarkers(cachedDisk(null), DRAWN)).toBe(null);
  });

  it.each([0, 999, drawBlocks(DRAWN.seed, DRAWN.blocks)[300] ?? 0])(
    "are missing if the disk loses block %s",
    (lost) => {
      expect(writeMarkers(cachedDisk(lost), DRAWN)).toBe(lost);
    },
  );

  it("are missing if a block is unreadable", () => {
    expect(writeMarkers({ ...cachedDisk(null), read: () => null }, DRAWN)).toBe(0);
  });
});
