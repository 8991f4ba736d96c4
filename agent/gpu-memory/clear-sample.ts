import { SAMPLE_BLOCK_BYTES, sampleBlocksIn } from "../../shared/gpu-memory.ts";

/**
 * Returns the numbers of the blocks of cleared GPU memory that a worker process reads as a sample. The worker process divides the GPU's memory into
 * parts of equal size and draws one block of each part at random. `below(n)` returns a random integer from 0 to n - 1.
 */
export function sampleBlocks(bytes: number, sampleBytes: number, below: (limit: number) => number): number[] {
  const blocks = sampleBlocksIn(bytes);
  const parts = Math.min(blocks, Math.ceil(sampleBytes / SAMPLE_BLOCK_BYTES));
  return Array.from({ length: parts }, (_, part) => {
    const from = Math.floor((part * blocks) / parts);
    return from + below(Math.floor(((part + 1) * blocks) / parts) - from);
  });
}
