import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { CleaningEvidence } from "../../../shared/tasks/cleaning-step.ts";
import { TECHNIQUE_NAMES, TECHNIQUES } from "../../storage/purge-technique.ts";
import { type DiskJournal, diskJournal, type JournalRead } from "./disk-journal.ts";
import { StepEnd } from "./works.ts";

const FOLDER = "var/lib/muster/agent/purge";

/**
 * The last purge of one disk. The agent writes the state `marking` before the markers, `started` before the purge command, and `ended` when the end
 * is known. Because of the journal, a later worker process of the task never sends the command a second time.
 */
const Entry = z.strictObject({
  format: z.literal("muster-purge/1"),
  serial: z.string(),
  task_id: TaskId,
  /** The earlier task that sent the purge command, if the present task only waits for the end, otherwise null. */
  adopted_task: TaskId.nullable(),
  /** The id of the host's boot in which the agent wrote the journal entry. */
  boot_id: z.string(),
  state: z.enum(["marking", "started", "ended"]),
  technique: z.enum(TECHNIQUE_NAMES),
  /** The random number from which the sample's blocks and markers follow. */
  seed: z.string(),
  blocks: z.int().min(1),
  status_before: z.string(),
  /** What the disk told of itself before the purge, as evidence if the worker process is lost. */
  facts: CleaningEvidence,
  end: StepEnd.nullable(),
});
export type PurgeEntry = z.output<typeof Entry>;

export type PurgeJournal = DiskJournal<PurgeEntry>;

/** The journal of a disk's purges. */
export const purgeJournal = (root: string, serial: string): PurgeJournal =>
  diskJournal(root, FOLDER, Entry, serial, "Whether a purge of the disk runs is unknown. Check the disk's log");

/** The evidence of a disk that was not purged, from the journal of the task's purge. Only a purge of the same task changed the disk for the task. */
export function failedEvidence(taskId: string, serial: string, read: JournalRead<PurgeEntry>): StepEnd["evidence"] {
  const nothing = { media_kind: "disk", serial };
  if (!read.ok || read.entry?.task_id !== taskId) return nothing;
  const { facts, state, technique, status_before } = read.entry;
  const told = state === "marking" ? {} : { technique: TECHNIQUES[technique].title, status_before };
  return { ...facts, ...nothing, ...told, markers_written: true, command_sent: state !== "marking" };
}
