import { sampleBlocksIn } from "../../shared/gpu-memory.ts";

/**
 * Draws `count` different sample blocks of a GPU, or all blocks if the GPU has fewer. The hub draws after the GPU's worker has committed, so the
 * worker could not know the blocks during the fill. `below(n)` returns a random integer from 0 to n - 1.
 */
export function drawBlocks(allocatedBytes: number, count: number, below: (limit: number) => number): number[] {
  const blocks = sampleBlocksIn(allocatedBytes);
  const drawn = new Set<number>();
  // Robert Floyd's algorithm draws each set of the given size with the same chance, and never more than `count` times.
  for (let top = blocks - Math.min(count, blocks); top < blocks; top += 1) {
    const one = below(top + 1);
    drawn.add(drawn.has(one) ? top : one);
  }
  return [...drawn].sort((a, b) => a - b);
}
