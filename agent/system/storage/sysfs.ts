import { type Dirent, readdirSync, readFileSync } from "node:fs";
import { isMissing } from "../files.ts";

/** Returns a sysfs file's text without white space at its ends, or null if the file is missing, empty or unreadable. */
export function textOf(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim() || null;
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}

export const namesIn = (folder: string): string[] =>
  readIfFolder(folder)
    .map(({ name }) => name)
    .sort();

export function readIfFolder(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    // A block device that has disappeared has no holders. A device without a folder `holders` in sysfs is a partition under an old kernel, or no
    // disk.
    if (isMissing(error) || (error instanceof Error && "code" in error && error.code === "ENOTDIR")) return [];
    throw error;
  }
}

/** True if a sysfs file is missing or unreadable, as many are for some kinds of devices. */
export const isUnreadable = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  ["ENOENT", "ENOTDIR", "EISDIR", "EINVAL", "EIO", "ENXIO", "ENODEV"].includes(String(error.code));
