import { createHmac } from "node:crypto";
import { answerPrefix, SAMPLE_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import type { GpuChallenge } from "./exchange.ts";

/**
 * Answers a hub's challenge: for each block of GPU memory that the challenge names, an HMAC over the block's bytes, keyed by the challenge's nonce.
 */
export const answersTo = (
  { nonce, blocks }: GpuChallenge,
  of: { readonly fillTaskId: string; readonly uuid: string },
  read: (offset: number, bytes: number) => readonly Buffer[],
): string[] =>
  blocks.map((block) => {
    const hmac = createHmac("sha256", Buffer.from(nonce, "hex")).update(answerPrefix(of.fillTaskId, of.uuid, block));
    for (const piece of read(block * SAMPLE_BLOCK_BYTES, SAMPLE_BLOCK_BYTES)) hmac.update(piece);
    return hmac.digest("base64url");
  });
