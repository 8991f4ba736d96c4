import { createHmac } from "node:crypto";
import { answerPrefix, SAMPLE_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import type { GpuChallenge } from "./exchange.ts";

/** The agent answers a hub's challenge by an HMAC over each named block of GPU memory, keyed by the challenge's nonce. */
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
