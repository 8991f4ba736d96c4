import { lstatSync, rmdirSync, type Stats, unlinkSync } from "node:fs";
import { codeOf, entryPath } from "./descriptors.ts";

/** What an emptied folder's run has counted. */
export interface Removed {
  files: number;
  folders: number;
  /** The bytes on the disk that the removed files used. A file with another name outside the folder frees nothing and counts nothing. */
  bytes: number;
  /** Files that have another name, so that their content may still be on the disk. */
  hardLinks: number;
  kept: number;
  /** Files whose attributes `immutable` or `append only` were cleared. */
  cleared: number;
  /** Names that lead to another mount. The content of another mount is never touched. */
  mounts: number;
  failures: number;
  /** The first failures: the place in the folder, and why. */
  readonly named: string[];
}

/** Begins the counts of things that a further round may find in order. */
export function forgetFailures(removed: Removed): void {
  removed.failures = 0;
  removed.mounts = 0;
  removed.kept = 0;
  removed.named.length = 0;
}

const MOST_NAMED = 3;
const LONGEST_NAME = 120;

export const nothingRemoved = (): Removed => ({
  files: 0,
  folders: 0,
  bytes: 0,
  hardLinks: 0,
  kept: 0,
  cleared: 0,
  mounts: 0,
  failures: 0,
  named: [],
});

/** A name of any bytes as text for a message. Bytes that are no printable text are escaped. */
const printable = (name: Buffer): string =>
  name
    .toString("latin1")
    .replace(/[^\x20-\x7e]/g, (letter) => `\\x${letter.charCodeAt(0).toString(16).padStart(2, "0")}`)
    .slice(0, LONGEST_NAME);

export function noteFailure(removed: Removed, name: Buffer, why: string): void {
  removed.failures += 1;
  if (removed.named.length < MOST_NAMED) removed.named.push(`${printable(name)}: ${why}`);
}

export type FileEnd = "removed" | "gone" | "folder" | "protected" | "failed";

/**
 * Removes one file, socket, device or symbolic link. The removal never opens or follows the entry. `protected` means that an attribute of the file or
 * of its folder forbids the removal.
 */
export function removeFile(path: Buffer, name: Buffer, removed: Removed): FileEnd {
  let facts: Stats | undefined;
  try {
    facts = lstatSync(path, { throwIfNoEntry: false });
    unlinkSync(path);
  } catch (error) {
    return endOf(codeOf(error), facts, name, removed);
  }
  removed.files += 1;
  if (facts === undefined) return "removed";
  if (facts.nlink > 1) removed.hardLinks += 1;
  else removed.bytes += facts.blocks * 512;
  return "removed";
}

function endOf(code: string, facts: Stats | undefined, name: Buffer, removed: Removed): FileEnd {
  if (code === "ENOENT") return "gone";
  if (code === "EISDIR" || facts?.isDirectory() === true) return "folder";
  if (code === "EPERM" || code === "EACCES") return "protected";
  if (code === "EBUSY") removed.mounts += 1;
  noteFailure(removed, name, code === "EBUSY" ? "a mount covers it" : code);
  return "failed";
}

export type FolderEnd = "removed" | "gone" | "filled" | "protected" | "failed";

/** Removes one empty folder. */
export function removeFolder(parent: number, name: Buffer, removed: Removed): FolderEnd {
  try {
    rmdirSync(entryPath(parent, name));
    removed.folders += 1;
    return "removed";
  } catch (error) {
    const code = codeOf(error);
    // Something else now has the folder's name. The next look into the parent folder finds it.
    if (code === "ENOENT" || code === "ENOTDIR") return "gone";
    if (code === "ENOTEMPTY" || code === "EEXIST") return "filled";
    if (code === "EPERM" || code === "EACCES") return "protected";
    noteFailure(removed, name, code === "EBUSY" ? "a mount or a process uses it" : code);
    return "failed";
  }
}
