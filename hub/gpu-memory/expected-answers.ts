import { createCipheriv, createHmac } from "node:crypto";
import { z } from "zod";
import {
  answerPrefix,
  CHUNK_BYTES,
  chunkNonce,
  GpuAnswer,
  GpuUuid,
  MOST_GPUS,
  MOST_SAMPLE_BLOCKS,
  SAMPLE_BLOCK_BYTES,
  SampleBlock,
  STREAM_BLOCK_BYTES,
} from "../../shared/gpu-memory.ts";

/** The hub's questions about a host's GPU memory, and the host's answers, which the hub checks by its own computation. */
export const AnswersToCheck = z.strictObject({
  fill_task_id: z.uuid(),
  seed: z.string().regex(/^[0-9a-f]{64}$/),
  nonce: z.string().regex(/^[0-9a-f]{32}$/),
  gpus: z
    .array(
      z.strictObject({
        /** The index of the GPU in the list of GPUs in the fill task's input. */
        gpu: z.int().min(0).max(MOST_GPUS),
        uuid: GpuUuid,
        blocks: z.array(SampleBlock).max(MOST_SAMPLE_BLOCKS),
        answers: z.array(GpuAnswer).max(MOST_SAMPLE_BLOCKS),
      }),
    )
    .max(MOST_GPUS),
});
export type AnswersToCheck = z.output<typeof AnswersToCheck>;

export interface CheckedAnswers {
  readonly uuid: string;
  readonly asked: number;
  readonly correct: number;
}

const ZEROS = Buffer.alloc(SAMPLE_BLOCK_BYTES);

/** Returns the bytes that a sample block of a GPU's memory must have after the fill task has overwritten the memory. */
export function sampleBlockBytes(seed: string, gpu: number, block: number): Buffer {
  const offset = block * SAMPLE_BLOCK_BYTES;
  const counter = Buffer.alloc(4);
  counter.writeUInt32LE((offset % CHUNK_BYTES) / STREAM_BLOCK_BYTES);
  const nonce = chunkNonce(gpu, Math.floor(offset / CHUNK_BYTES));
  return createCipheriv("chacha20", Buffer.from(seed, "hex"), Buffer.concat([counter, nonce])).update(ZEROS);
}

/**
 * Compares each answer of a host with the right answer, which follows from the bytes of the overwritten GPU memory. If a host does not answer a
 * question of a GPU memory challenge, the missing answer counts as wrong.
 */
export const checkAnswers = ({ fill_task_id, seed, nonce, gpus }: AnswersToCheck): CheckedAnswers[] =>
  gpus.map(({ gpu, uuid, blocks, answers }) => ({
    uuid,
    asked: blocks.length,
    correct: blocks.filter((block, index) => {
      const hmac = createHmac("sha256", Buffer.from(nonce, "hex"))
        .update(answerPrefix(fill_task_id, uuid, block))
        .update(sampleBlockBytes(seed, gpu, block));
      return hmac.digest("base64url") === answers[index];
    }).length,
  }));
