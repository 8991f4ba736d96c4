import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ResidueEntry, ResidueTenant } from "../../../shared/residue/snapshot.ts";
import type { RunTool } from "../exec.ts";
import { isMissing, listSome } from "../files.ts";
import { entryName } from "./entry-name.ts";

export class Unreadable extends Error {
  override readonly name = "Unreadable";
}

/** The size, in bytes, of the largest text file that the agent reads for the residue snapshot. dpkg's list of packages has a few megabytes. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
const MOST_NAMES = 100_000;
const CHUNK = 64 * 1024;

/**
 * The functions that read the items of the residue snapshot name files by the host's own paths, for example `/etc/passwd`, without the prefix `root`.
 */
export interface Reading {
  readonly root: string;
  readonly tenant: ResidueTenant | null;
  readonly run: RunTool;
  readonly digest: (text: string) => string;
  /** A signal that is aborted when the deadline of the item of the residue snapshot has passed. */
  readonly signal: AbortSignal;
  /** The pause, in milliseconds, between two readings of a part of the host, for example its processes, that changes while the agent reads it. */
  readonly pauseMs: number;
}

/** Makes an entry of the residue snapshot for a thing that is only present or absent. */
export const presence = (reading: Reading, name: string): ResidueEntry => valued(reading, name, "present");

export const valued = ({ digest }: Reading, name: string, value: string): ResidueEntry => ({
  name: entryName(name),
  digest: digest(value),
});

export function presences(reading: Reading, names: Iterable<string>): ResidueEntry[] {
  return [...new Set(names)].sort().map((name) => presence(reading, name));
}

/**
 * Reads a state of the host twice, and keeps only the entries that both reads contain. `settled` reads the state twice, so that a short job of the
 * system, for example of cron, leaves no entry in the residue snapshot.
 */
export async function settled(reading: Reading, read: () => Promise<ResidueEntry[]>): Promise<ResidueEntry[]> {
  const first = new Set((await read()).map(({ name }) => name));
  if (first.size === 0) return [];
  await sleep(reading.pauseMs, undefined, { signal: reading.signal });
  return (await read()).filter(({ name }) => first.has(name));
}

export const linesOf = (text: string | null): string[] =>
  (text ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

const isNoFolder = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOTDIR" || error.code === "ENODEV");

/** Returns the text of a small file of /proc, /sys or /etc without white space at its ends, or an empty text if the file is missing. */
export async function textOf({ root }: Reading, path: string): Promise<string> {
  try {
    return ((await readText(join(root, path))) ?? "").trim();
  } catch (error) {
    if (isNoFolder(error)) return "";
    throw error;
  }
}

/** Returns the sorted names in a folder, or no names if the path is no folder, for example because a tenant has put a file in its place. */
export async function namesIn({ root }: Reading, path: string): Promise<string[]> {
  try {
    return await listFolder(join(root, path));
  } catch (error) {
    if (isNoFolder(error)) return [];
    throw error;
  }
}

/**
 * Reads a text file, or returns null if the file is missing. A tenant chooses the size of some files, so a file of more than `maxBytes` makes the
 * item of the residue snapshot unreadable. `readText` counts bytes while it reads, because files of /proc do not tell their size.
 */
export async function readText(
  file: string,
  maxBytes = MAX_TEXT_BYTES,
  encoding: "utf8" | "latin1" = "utf8",
): Promise<string | null> {
  try {
    const handle = await open(file, "r");
    try {
      const chunks: Buffer[] = [];
      for (let size = 0; ; ) {
        const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, null);
        if (bytesRead === 0) return Buffer.concat(chunks).toString(encoding);
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

/**
 * Returns the sorted names in a folder, and no names for a missing folder. A folder with more than `most` names, which a tenant can make, makes the
 * item of the residue snapshot unreadable.
 */
export async function listFolder(folder: string, most = MOST_NAMES): Promise<string[]> {
  const names = await listSome(folder, most + 1);
  if (names.length > most) throw new Unreadable(`${folder} has more than ${most} names, which is too much to read.`);
  return names.sort();
}
