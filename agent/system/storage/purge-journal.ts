import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { CleaningEvidence } from "../../../shared/tasks/cleaning-step.ts";
import { messageOf } from "../../message-of.ts";
import { TECHNIQUE_NAMES, TECHNIQUES } from "../../storage/purge-technique.ts";
import { isMissing } from "../files.ts";
import { writeWorkFile } from "../workers/work-files.ts";
import { StepEnd } from "./works.ts";

const FOLDER = "var/lib/muster/agent/purge";

/**
 * The last purge of one disk. The agent writes `marking` to its state folder before it writes the markers, `started` before it sends the command, and
 * `ended` when the end is known. A later worker process of the same task therefore never sends the command a second time.
 */
const Entry = z.strictObject({
  format: z.literal("muster-purge/1"),
  serial: z.string(),
  task_id: TaskId,
  /** The earlier task that sent the command, if the task `task_id` only waits for the end of the command. Otherwise null. */
  adopted_task: TaskId.nullable(),
  /** The boot id of the kernel under which the entry was written. */
  boot_id: z.string(),
  state: z.enum(["marking", "started", "ended"]),
  technique: z.enum(TECHNIQUE_NAMES),
  /** The random number from which the sample's blocks and markers follow. */
  seed: z.string(),
  blocks: z.int().min(1),
  status_before: z.string(),
  /** What the disk told of itself before the purge, for the evidence of a purge whose worker process is lost. */
  facts: CleaningEvidence,
  end: StepEnd.nullable(),
});
export type PurgeEntry = z.output<typeof Entry>;

export type PurgeJournalRead =
  | { readonly ok: true; readonly entry: PurgeEntry | null }
  | { readonly ok: false; readonly detail: string };

export interface PurgeJournal {
  /** Reads the entry. Only a missing file means that the disk has no entry: an entry that cannot be read may be a purge that still runs. */
  read(): PurgeJournalRead;
  write(entry: PurgeEntry): void;
}

/** The journal of a disk's purges. The name of its file is a hash, because a serial number may contain any printable character. */
export function purgeJournal(root: string, serial: string): PurgeJournal {
  const folder = join(root, FOLDER);
  const name = `${createHash("sha256").update(serial).digest("hex").slice(0, 40)}.json`;
  return {
    read: () => {
      try {
        const entry = Entry.parse(JSON.parse(readFileSync(join(folder, name), "utf8")));
        if (entry.serial === serial) return { ok: true, entry };
        return unreadable(name, "it names another disk");
      } catch (error) {
        return isMissing(error) ? { ok: true, entry: null } : unreadable(name, messageOf(error));
      }
    },
    write: (entry) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      writeWorkFile(folder, name, entry);
    },
  };
}

const unreadable = (name: string, why: string): PurgeJournalRead => ({
  ok: false,
  detail: `Whether a purge of the disk runs is unknown. Check the disk's log, then remove /${FOLDER}/${name}: ${why.slice(0, 200)}`,
});

/** The evidence of a disk that was not purged, from the journal of the task's purge. Only a purge of the same task changed the disk for the task. */
export function failedEvidence(taskId: string, serial: string, read: PurgeJournalRead): StepEnd["evidence"] {
  const nothing = { media_kind: "disk", serial };
  if (!read.ok || read.entry?.task_id !== taskId) return nothing;
  const { facts, state, technique, status_before } = read.entry;
  const told = state === "marking" ? {} : { technique: TECHNIQUES[technique].title, status_before };
  return { ...facts, ...nothing, ...told, markers_written: true, command_sent: state !== "marking" };
}
