import { lstatSync, rmdirSync, type Stats, unlinkSync } from "node:fs";
import { codeOf, entryPath } from "./descriptors.ts";

export interface Removed {
  files: number;
  folders: number;
  /** How many bytes the removed files used on the disk. A removed file that still has another name (hard link) frees no bytes. */
  bytes: number;
  /** The number of removed names whose file has another name too, so that the file's content may still be on the disk. */
  hardLinks: number;
  kept: number;
  /** The number of files whose attributes `immutable` and `append only` the agent cleared. */
  cleared: number;
  /** The number of names that lead to another mount, whose content the agent never touches. */
  mounts: number;
  failures: number;
  /** The first files and folders that the agent could not remove, each with its name and the reason. */
  readonly named: string[];
}

/** Before the agent begins another round of emptying a folder, it sets its counts of failures, mounts and kept entries back to zero. */
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

/** Returns a file name as a text for a message, with each byte escaped that is not a printable ASCII character. */
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
 * Removes one file, socket, device or symbolic link; `removeFile` neither opens a file nor follows a link. The result `protected` means that an
 * attribute of the file or of its folder, such as `immutable`, forbids the removal.
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

export function removeFolder(parent: number, name: Buffer, removed: Removed): FolderEnd {
  try {
    rmdirSync(entryPath(parent, name));
    removed.folders += 1;
    return "removed";
  } catch (error) {
    const code = codeOf(error);
    // Another process has removed the folder that the agent wants to remove, or has put a file in its place. In its next round, the agent finds a
    // file that has taken the name of the removed folder.
    if (code === "ENOENT" || code === "ENOTDIR") return "gone";
    if (code === "ENOTEMPTY" || code === "EEXIST") return "filled";
    if (code === "EPERM" || code === "EACCES") return "protected";
    noteFailure(removed, name, code === "EBUSY" ? "a mount or a process uses it" : code);
    return "failed";
  }
}
