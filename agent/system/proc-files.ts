import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** The code of a system error, for example `ENOENT`, or null for another error. */
export const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : null);

/** True if a file in /proc is missing because its process, thread or descriptor is gone. */
export const isGone = (error: unknown): boolean => ["ENOENT", "ESRCH"].includes(String(codeOf(error)));

/** Returns the names in a folder of /proc, and none if its process or thread is gone. */
export function namesIfThere(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** Returns the kernel's number of the mount to which an open descriptor in /proc belongs, or an empty text if the descriptor is gone. */
export function mountIdOf(descriptor: string): string {
  const about = join(dirname(dirname(descriptor)), "fdinfo", basename(descriptor));
  try {
    return /^mnt_id:\s*(\d+)$/m.exec(readFileSync(about, "latin1"))?.[1] ?? "";
  } catch (error) {
    if (isGone(error)) return "";
    throw error;
  }
}
