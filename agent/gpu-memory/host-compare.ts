import { type Cipheriv, createCipheriv } from "node:crypto";
import { SCAN_UNIT_BYTES, STREAM_BLOCK_BYTES } from "../../shared/gpu-memory.ts";

/** This module computes on the host's processor what GPU kernels otherwise compute on a GPU. */
export function streamFrom(key: Buffer, nonce: Uint8Array, counter: number): Cipheriv {
  const begin = Buffer.alloc(4);
  begin.writeUInt32LE(counter);
  return createCipheriv("chacha20", key, Buffer.concat([begin, nonce]));
}

/** Returns how many blocks of 64 bytes differ between two buffers of equal length, and the number of the first block that differs. */
export function differingBlocks(expected: Buffer, found: Buffer): { blocks: number; first: number | null } {
  const differing = { blocks: 0, first: null as number | null };
  if (expected.equals(found)) return differing;
  for (let at = 0; at < expected.length; at += STREAM_BLOCK_BYTES) {
    if (expected.compare(found, at, at + STREAM_BLOCK_BYTES, at, at + STREAM_BLOCK_BYTES) === 0) continue;
    differing.blocks += 1;
    differing.first ??= at / STREAM_BLOCK_BYTES;
  }
  return differing;
}

export function countUnits(bytes: Buffer, marker: number): { nonzero: number; marked: number } {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const found = { nonzero: 0, marked: 0 };
  for (let at = 0; at < words.length; at += SCAN_UNIT_BYTES / 4) {
    const [a, b, c, d] = [words[at], words[at + 1], words[at + 2], words[at + 3]];
    if (a !== 0 || b !== 0 || c !== 0 || d !== 0) found.nonzero += 1;
    if (a === marker && b === marker && c === marker && d === marker) found.marked += 1;
  }
  return found;
}
