import { SAMPLE_BLOCK_BYTES, sampleBlocksIn } from "../../shared/gpu-memory.ts";

/**
 * The numbers of the sample blocks that a worker process reads of cleared memory. The memory is divided into parts of equal size, and one block of
 * each part is drawn at random, so that the blocks are spread over the whole memory. `below(n)` returns a random integer from 0 to n - 1.
 */
export function sampleBlocks(bytes: number, sampleBytes: number, below: (limit: number) => number): number[] {
  const blocks = sampleBlocksIn(bytes);
  const parts = Math.min(blocks, Math.ceil(sampleBytes / SAMPLE_BLOCK_BYTES));
  return Array.from({ length: parts }, (_, part) => {
    const from = Math.floor((part * blocks) / parts);
    return from + below(Math.floor(((part + 1) * blocks) / parts) - from);
  });
}
