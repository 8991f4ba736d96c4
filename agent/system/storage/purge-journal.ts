import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { TECHNIQUE_NAMES } from "../../storage/purge-technique.ts";
import { readWorkFile, writeWorkFile } from "../workers/work-files.ts";
import { StepEnd } from "./works.ts";

const FOLDER = "var/lib/muster/agent/purge";

/**
 * The last purge of one disk. The agent writes `started` to its state folder before it sends the command, and `ended` when the end is known. A later
 * worker process of the same task therefore never sends the command a second time.
 */
const Entry = z.strictObject({
  format: z.literal("muster-purge/1"),
  serial: z.string(),
  task_id: TaskId,
  state: z.enum(["started", "ended"]),
  technique: z.enum(TECHNIQUE_NAMES),
  /** The random number from which the sample's blocks and markers follow. */
  seed: z.string(),
  blocks: z.int().min(1),
  status_before: z.string(),
  end: StepEnd.nullable(),
});
export type PurgeEntry = z.output<typeof Entry>;

export interface PurgeJournal {
  read(): PurgeEntry | null;
  write(entry: PurgeEntry): void;
}

/** The journal of a disk's purges. The name of its file is a hash, because a serial number may contain any printable character. */
export function purgeJournal(root: string, serial: string): PurgeJournal {
  const folder = join(root, FOLDER);
  const name = `${createHash("sha256").update(serial).digest("hex").slice(0, 40)}.json`;
  return {
    read: () => readWorkFile(folder, name, Entry),
    write: (entry) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      writeWorkFile(folder, name, entry);
    },
  };
}
