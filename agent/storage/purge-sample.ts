import { createHash } from "node:crypto";
import type { Technique } from "./purge-technique.ts";
import { TECHNIQUES } from "./purge-technique.ts";

export const BLOCK_BYTES = 4096;
const SECTOR_BYTES = 512;
/** If 1 % of a disk was not erased, 688 random blocks miss this part with a probability of only 0.1 %. */
export const RANDOM_BLOCKS = 688;
/** How many blocks at each end of a disk the sample contains, because partition tables and file systems keep copies at the ends. */
export const END_BLOCKS = 8;

/** Chooses the blocks of a disk that the agent marks before a purge and reads after it: both ends of the disk, and random blocks. */
export function drawBlocks(seed: string, blocks: number): number[] {
  const drawn = new Set<number>();
  for (let index = 0; index < Math.min(END_BLOCKS, blocks); index += 1) {
    drawn.add(index);
    drawn.add(blocks - 1 - index);
  }
  const wanted = Math.min(blocks, drawn.size + RANDOM_BLOCKS);
  for (let count = 0; drawn.size < wanted; count += 1) {
    const digest = createHash("sha256").update(`${seed}/block/${count}`).digest();
    drawn.add(Number(digest.readBigUInt64BE() % BigInt(blocks)));
  }
  return [...drawn].sort((one, other) => one - other);
}

/**
 * The marker of a block: the bytes that the agent writes into the block before a purge, and that nobody can foresee without the purge's random seed.
 */
export const markerOf = (seed: string, block: number): Buffer =>
  createHash("shake256", { outputLength: BLOCK_BYTES }).update(`${seed}/marker/${block}`).digest();

/**
 * How a block reads after a purge: the byte that fills it, `kept` if it still contains a part of the marker that the agent had written into it,
 * `other`, or `unreadable`.
 */
export type BlockLook = number | "kept" | "other" | "unreadable";

export function lookAt(bytes: Buffer | null, marker: Buffer): BlockLook {
  if (bytes === null) return "unreadable";
  for (let at = 0; at < BLOCK_BYTES; at += SECTOR_BYTES)
    if (bytes.subarray(at, at + SECTOR_BYTES).equals(marker.subarray(at, at + SECTOR_BYTES))) return "kept";
  const [first = 0] = bytes;
  return bytes.every((byte) => byte === first) ? first : "other";
}

export interface SampleVerdict {
  readonly reason: null | "sample_differs" | "sample_unreadable";
  readonly result: string;
}

/**
 * After a purge, the sampled blocks of the disk must read as the purge technique promises. A block that the agent cannot read never counts as clean.
 */
export function judgeSample(technique: Technique, looks: readonly BlockLook[]): SampleVerdict {
  const count = (wanted: (look: BlockLook) => boolean): number => looks.filter(wanted).length;
  const of = `of ${looks.length} blocks`;
  if (looks.length === 0) return { reason: "sample_unreadable", result: "no block was read" };
  const unreadable = count((look) => look === "unreadable");
  const kept = count((look) => look === "kept");
  if (kept > 0) return { reason: "sample_differs", result: `${kept} ${of} still have what was written before` };
  if (unreadable > 0) return { reason: "sample_unreadable", result: `${unreadable} ${of} are unreadable` };
  if (TECHNIQUES[technique].expects === "changed")
    return { reason: null, result: `all ${looks.length} blocks read differently than before` };
  const [first] = looks;
  const same = count((look) => look === first && look !== "other");
  return same === looks.length
    ? {
        reason: null,
        result: `all ${looks.length} blocks read only the byte 0x${Number(first).toString(16).padStart(2, "0")}`,
      }
    : { reason: "sample_differs", result: `${looks.length - same} ${of} read neither zeros nor one fixed byte` };
}
