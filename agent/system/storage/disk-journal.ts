import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { messageOf } from "../../message-of.ts";
import { isMissing } from "../files.ts";
import { writeWorkFile } from "../workers/work-files.ts";

export type JournalRead<T> =
  | { readonly ok: true; readonly entry: T | null }
  | { readonly ok: false; readonly detail: string };

/** The agent's state folder contains a journal for each disk. A new entry replaces the present entry of a disk's journal completely or not at all. */
export interface DiskJournal<T> {
  /** Only a missing journal file means that the disk has no entry: an unreadable entry may belong to work on the disk that still runs. */
  read(): JournalRead<T>;
  write(entry: T): void;
}

/** The file of a disk's journal is named by a hash, because a disk's serial number may contain any printable character. */
export function diskJournal<T extends { readonly serial: string }>(
  root: string,
  folder: string,
  schema: z.ZodType<T>,
  serial: string,
  advice: string,
): DiskJournal<T> {
  const whole = join(root, folder);
  const name = `${createHash("sha256").update(serial).digest("hex").slice(0, 40)}.json`;
  const unreadable = (why: string): JournalRead<T> => ({
    ok: false,
    detail: `${advice}, then remove /${folder}/${name}: ${why.slice(0, 200)}`,
  });
  return {
    read: () => {
      try {
        const entry = schema.parse(JSON.parse(readFileSync(join(whole, name), "utf8")));
        return entry.serial === serial ? { ok: true, entry } : unreadable("it names another disk");
      } catch (error) {
        return isMissing(error) ? { ok: true, entry: null } : unreadable(messageOf(error));
      }
    },
    write: (entry) => {
      mkdirSync(whole, { recursive: true, mode: 0o700 });
      writeWorkFile(whole, name, entry);
    },
  };
}

/** Reads the entries of all disks whose journals are in a folder, and lists the files that it cannot read. */
export function readDiskJournals<T>(
  root: string,
  folder: string,
  schema: z.ZodType<T>,
): { readonly entries: readonly T[]; readonly unreadable: readonly string[] } {
  const entries: T[] = [];
  const unreadable: string[] = [];
  try {
    for (const name of readdirSync(join(root, folder)).filter((one) => one.endsWith(".json")))
      try {
        entries.push(schema.parse(JSON.parse(readFileSync(join(root, folder, name), "utf8"))));
      } catch {
        // Nobody knows to which disk an unreadable journal file belongs, so the caller of `readDiskJournals` must fail closed.
        unreadable.push(`/${folder}/${name}`);
      }
  } catch (error) {
    if (!isMissing(error)) unreadable.push(`/${folder}`);
  }
  return { entries, unreadable };
}
