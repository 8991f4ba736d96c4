import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ResidueEntry, ResidueTenant } from "../../../shared/residue/snapshot.ts";
import type { RunTool } from "../exec.ts";
import { isMissing, listSome } from "../files.ts";
import { entryName } from "./entry-name.ts";

/** The reason why an item cannot be read. Its message reaches an operator. */
export class Unreadable extends Error {
  override readonly name = "Unreadable";
}

/** The largest text that the reader of an item reads. The list of installed packages has a few megabytes. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
/** The largest number of names of one folder that the reader of an item reads. */
const MOST_NAMES = 100_000;
const CHUNK = 64 * 1024;

/** What the reader of an item gets. Paths in the functions of the readers are the host's own (`/etc/...`), without the root. */
export interface Reading {
  readonly root: string;
  readonly tenant: ResidueTenant | null;
  readonly run: RunTool;
  /** The keyed digest of a text. */
  readonly digest: (text: string) => string;
  /** Aborted when the item's deadline has passed. */
  readonly signal: AbortSignal;
  /** The pause between the two reads of a state that changes by itself. */
  readonly pauseMs: number;
}

/** An entry of a thing that is only present or absent. */
export const presence = (reading: Reading, name: string): ResidueEntry => valued(reading, name, "present");

export const valued = ({ digest }: Reading, name: string, value: string): ResidueEntry => ({
  name: entryName(name),
  digest: digest(value),
});

/** One entry for each name. Two things of one name become one entry, so that the number of equal things does not matter. */
export function presences(reading: Reading, names: Iterable<string>): ResidueEntry[] {
  return [...new Set(names)].sort().map((name) => presence(reading, name));
}

/**
 * Reads a state that changes by itself twice, and keeps the entries that both reads contain. Short jobs of the system, for example of cron, are
 * therefore no entries.
 */
export async function settled(reading: Reading, read: () => Promise<ResidueEntry[]>): Promise<ResidueEntry[]> {
  const first = new Set((await read()).map(({ name }) => name));
  if (first.size === 0) return [];
  await sleep(reading.pauseMs, undefined, { signal: reading.signal });
  return (await read()).filter(({ name }) => first.has(name));
}

/** The lines of a text without empty lines and without the spaces around each line. */
export const linesOf = (text: string | null): string[] =>
  (text ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

const isNoFolder = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOTDIR" || error.code === "ENODEV");

/** The text of a small file of /proc, /sys or /etc without spaces around it. The text of a missing file is empty. */
export async function textOf({ root }: Reading, path: string): Promise<string> {
  try {
    return ((await readText(join(root, path))) ?? "").trim();
  } catch (error) {
    if (isNoFolder(error)) return "";
    throw error;
  }
}

/** The sorted names in a folder. Something else than a folder has no names, because a tenant may have put a file in the place of a folder. */
export async function namesIn({ root }: Reading, path: string): Promise<string[]> {
  try {
    return await listFolder(join(root, path));
  } catch (error) {
    if (isNoFolder(error)) return [];
    throw error;
  }
}

/**
 * Reads a text file, and returns null when the file does not exist. A tenant chooses the size of some files, so a larger file makes the item
 * unreadable. The size is counted while the file is read, because files of /proc have no size.
 */
export async function readText(file: string, maxBytes = MAX_TEXT_BYTES): Promise<string | null> {
  try {
    const handle = await open(file, "r");
    try {
      const chunks: Buffer[] = [];
      for (let size = 0; ; ) {
        const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, null);
        if (bytesRead === 0) return Buffer.concat(chunks).toString("utf8");
        size += bytesRead;
        if (size > maxBytes)
          throw new Unreadable(`${file} has more than ${maxBytes} bytes, which is too much to read.`);
        chunks.push(buffer.subarray(0, bytesRead));
      }
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** The sorted names in a folder. A folder that is gone has none. A tenant may fill a folder, so a folder with more names makes the item unreadable. */
export async function listFolder(folder: string, most = MOST_NAMES): Promise<string[]> {
  const names = await listSome(folder, most + 1);
  if (names.length > most) throw new Unreadable(`${folder} has more than ${most} names, which is too much to read.`);
  return names.sort();
}
