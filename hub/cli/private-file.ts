import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { UsageError } from "./errors.ts";

/** The bits of a file's mode by which its group and others may use the file. */
const FOR_OTHERS = 0o077;

/**
 * Reads a file that only its owner may use; null if there is none. `privateText` refuses a file that other users may read or change, with `advice` about
 * what to do.
 */
export function privateText(file: string, advice: string): string | null {
  let mode: number;
  let text: string;
  try {
    mode = statSync(file).mode;
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new UsageError(`${file} could not be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if ((mode & FOR_OTHERS) === 0) return text;
  throw new UsageError(
    `Other users of this machine may read or change ${file}, so the command does not use it. ${advice}`,
  );
}

/** Writes a file that only its owner may use. A program that reads the file during the write sees either the old or the new file. */
export function writePrivate(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, text, { mode: 0o600, flag: "wx" });
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
}
