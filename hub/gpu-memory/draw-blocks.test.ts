import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { SAMPLE_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import { drawBlocks } from "./draw-blocks.ts";

describe("drawBlocks", () => {
  it("draws different blocks of the memory, sorted, and no more than there are", () => {
    for (const blocks of [0, 1, 2, 63, 64, 65, 10_000, 2_280_800])
      for (const count of [0, 1, 64]) {
        const drawn = drawBlocks(blocks * SAMPLE_BLOCK_BYTES, count, randomInt);
        expect(drawn.length).toBe(Math.min(blocks, count));
        expect(new Set(drawn).size).toBe(drawn.length);
        expect(drawn).toEqual(drawn.toSorted((a, b) => a - b));
        expect(drawn.every((one) => one >= 0 && one < blocks)).toBe(true);
      }
  });

  it("does not draw the last bytes that are no whole block", () => {
    expect(drawBlocks(3 * SAMPLE_BLOCK_BYTES - 1, 64, randomInt)).toEqual([0, 1]);
  });

  it("draws each set of blocks for exactly the same number of random values", () => {
    const times = new Map<string, number>();
    for (let a = 0; a < 3; a += 1)
      for (let b = 0; b < 4; b += 1)
        for (let c = 0; c < 5; c += 1) {
          const values = [a, b, c];
          const set = drawBlocks(5 * SAMPLE_BLOCK_BYTES, 3, () => values.shift() ?? 0).join();
          times.set(set, (times.get(set) ?? 0) + 1);
        }
    expect(times.size).toBe(10);
    expect(new Set(times.values())).toEqual(new Set([6]));
  });
});
