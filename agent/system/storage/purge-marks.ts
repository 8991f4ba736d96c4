import { messageOf } from "../../message-of.ts";
import { drawBlocks, judgeSample, lookAt, markerOf, type SampleVerdict } from "../../storage/purge-sample.ts";
import { type DirectDisk, openDirect } from "./direct-disk.ts";
import type { PurgeEntry } from "./purge-journal.ts";

type Drawn = Pick<PurgeEntry, "seed" | "blocks">;

/**
 * Writes test data (the marker) to each of the randomly chosen blocks of the disk. Returns the number of a block that does not return its test data
 * when it is read, or null if all do.
 */
export function writeMarkers(disk: Omit<DirectDisk, "close">, { seed, blocks }: Drawn): number | null {
  const drawn = drawBlocks(seed, blocks);
  for (const block of drawn) disk.write(block, markerOf(seed, block));
  disk.flush();
  return drawn.find((block) => disk.read(block)?.equals(markerOf(seed, block)) !== true) ?? null;
}

/** Returns why the agent could not write test data to the disk before the purge, or null if all chosen blocks hold their test data. */
export function mark(root: string, name: string, drawn: Drawn): string | null {
  try {
    const disk = openDirect(root, name, "write");
    try {
      const lost = writeMarkers(disk, drawn);
      return lost === null ? null : `Block ${lost} of ${name} does not keep what is written to it.`;
    } finally {
      disk.close();
    }
  } catch (error) {
    return `The blocks of ${name} cannot be written: ${messageOf(error)}`;
  }
}

export function readSample(
  root: string,
  name: string,
  { technique, seed, blocks }: Drawn & Pick<PurgeEntry, "technique">,
): { readonly count: number; readonly verdict: SampleVerdict } {
  const drawn = drawBlocks(seed, blocks);
  try {
    const disk = openDirect(root, name, "read");
    try {
      const looks = drawn.map((block) => lookAt(disk.read(block), markerOf(seed, block)));
      return { count: drawn.length, verdict: judgeSample(technique, looks) };
    } finally {
      disk.close();
    }
  } catch (error) {
    const result = `the sample cannot be read: ${messageOf(error)}`.slice(0, 200);
    return { count: drawn.length, verdict: { reason: "sample_unreadable", result } };
  }
}
