import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { CleaningEvidence } from "../../../shared/tasks/cleaning-step.ts";
import { ERASE_PASSWORD } from "../../storage/ata-facts.ts";
import { setsPassword, TECHNIQUE_NAMES, TECHNIQUES } from "../../storage/purge-technique.ts";
import { type DiskJournal, diskJournal, type JournalRead } from "./disk-journal.ts";
import { StepEnd } from "./works.ts";

const FOLDER = "var/lib/muster/agent/purge";

/**
 * The journal holds the last purge of each disk. The agent writes the state `marking` before it writes test data to some blocks of the disk,
 * `started` before the purge command, and `ended` when it knows the purge's end. Because the journal names the started purge, a later worker process
 * of the task never sends the purge command a second time.
 */
const Entry = z.strictObject({
  format: z.literal("muster-purge/1"),
  serial: z.string(),
  task_id: TaskId,
  /** If the present task only waits for a purge, the task that sent the purge command; otherwise null. */
  adopted_task: TaskId.nullable(),
  /** The id of the host's boot in which the agent wrote the journal entry. */
  boot_id: z.string(),
  state: z.enum(["marking", "started", "ended"]),
  technique: z.enum(TECHNIQUE_NAMES),
  /** The random number that determines the disk blocks that the agent marks before the purge and reads after it, and the test data in these blocks. */
  seed: z.string(),
  blocks: z.int().min(1),
  status_before: z.string(),
  /** What the disk told about itself before the purge, which is evidence even if the worker process is lost. */
  facts: CleaningEvidence,
  end: StepEnd.nullable(),
});
export type PurgeEntry = z.output<typeof Entry>;

export type PurgeJournal = DiskJournal<PurgeEntry>;

export const purgeJournal = (root: string, serial: string): PurgeJournal =>
  diskJournal(root, FOLDER, Entry, serial, "Whether a purge of the disk runs is unknown. Check the disk's log");

/**
 * Says that a disk may have the password of the agent's security erase, with the commands that remove it. Returns null if the task's purge set no
 * password on the disk, or if the end of the purge is known. The message about a password that may be left on the disk names the password, because
 * the password is documented and no secret.
 */
export function passwordLeft(taskId: string, serial: string, read: JournalRead<PurgeEntry>): string | null {
  if (!read.ok || read.entry?.task_id !== taskId) return null;
  const { state, technique, facts } = read.entry;
  if (state !== "started" || !setsPassword(technique)) return null;
  const path = `/dev/${facts["device"] ?? "sdX"}`;
  const commands = ["unlock", "disable"].map(
    (verb) => `hdparm --user-master u --security-${verb} ${ERASE_PASSWORD} ${path}`,
  );
  return `The disk ${serial} (${path}) may have the password ${ERASE_PASSWORD}, and may still erase itself. Purge the disk again, which removes the password. Or wait for the end of the erase, and run ${commands.join(" and then ")}.`;
}

/**
 * Returns the evidence about a disk that the agent did not purge, from the journal of the task's purge. The evidence names a change of the disk only
 * if the task's own purge changed the disk.
 */
export function failedEvidence(taskId: string, serial: string, read: JournalRead<PurgeEntry>): StepEnd["evidence"] {
  const nothing = { media_kind: "disk", serial };
  if (!read.ok || read.entry?.task_id !== taskId) return nothing;
  const { facts, state, technique, status_before } = read.entry;
  const told = state === "marking" ? {} : { technique: TECHNIQUES[technique].title, status_before };
  return { ...facts, ...nothing, ...told, markers_written: true, command_sent: state !== "marking" };
}
