import { sampleBlocksIn } from "../../shared/gpu-memory.ts";

/**
 * Draws `count` different sample blocks of a GPU's memory, or all blocks of a GPU with fewer blocks. The hub draws the sample blocks after the host
 * has reported the overwrite, so the host could not know the blocks before. `below(n)` returns a random integer from 0 to n - 1.
 */
export function drawBlocks(allocatedBytes: number, count: number, below: (limit: number) => number): number[] {
  const blocks = sampleBlocksIn(allocatedBytes);
  const drawn = new Set<number>();
  // Robert Floyd's algorithm draws each set of blocks with the same probability, and calls `below` at most `count` times.
  for (let top = blocks - Math.min(count, blocks); top < blocks; top += 1) {
    const one = below(top + 1);
    drawn.add(drawn.has(one) ? top : one);
  }
  return [...drawn].sort((a, b) => a - b);
}
