import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { ERASE_PASSWORD } from "../../storage/ata-facts.ts";
import { type BlockDevice, judgeDisk } from "../../storage/disk-rules.ts";
import type { Drive, DriveFacts, DriveRefusal } from "../../storage/drive.ts";
import { driveOf } from "../../storage/drive-of.ts";
import { BLOCK_BYTES } from "../../storage/purge-sample.ts";
import {
  type Advance,
  advanced,
  judgeProgress,
  outcomeOf,
  type PurgeFailure,
  patienceOf,
  progressText,
  type SanitizeStatus,
  setsPassword,
  TECHNIQUES,
  type Technique,
  type TechniqueChoice,
  WAIT_WITHIN_S,
} from "../../storage/purge-technique.ts";
import { attemptsBelow } from "../attempt.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { kernelBootId } from "../workers/processes.ts";
import { readDiskPicture } from "./block-devices.ts";
import { claimDisk, stillOpenedBy } from "./direct-disk.ts";
import { failedEvidence, type PurgeEntry, type PurgeJournal, purgeJournal } from "./purge-journal.ts";
import { mark, readSample } from "./purge-marks.ts";
import { releaseDisk } from "./release-disk.ts";
import type { PURGE_DISK, StepEnd } from "./works.ts";

type Input = z.output<typeof PURGE_DISK.input>;

export interface PurgeTiming {
  readonly lookEveryMs: number;
  /**
   * The number of unreadable sanitize statuses in a row after which the agent stops waiting for the end of the purge. During a reset of a disk, which
   * takes some seconds, the disk's sanitize status is unreadable.
   */
  readonly mostMisses: number;
  /** How many seconds a purge may take without any progress. */
  readonly patienceOf: (technique: Technique, status: SanitizeStatus | null) => number;
  /** How many seconds the agent waits for the end of a purge that makes progress. */
  readonly waitWithin: number;
}
export const PURGE_TIMING: PurgeTiming = { lookEveryMs: 1_000, mostMisses: 30, patienceOf, waitWithin: WAIT_WITHIN_S };

interface Purge {
  readonly run: WorkRun;
  readonly input: Input;
  readonly timing: PurgeTiming;
  readonly device: BlockDevice;
  readonly drive: Drive;
  readonly facts: DriveFacts;
  readonly journal: PurgeJournal;
}

const ended = (
  outcome: StepEnd["outcome"],
  message: string,
  reason: string,
  evidence: StepEnd["evidence"] = {},
): StepEnd => ({ outcome, message, evidence: { ...evidence, reason } });

/**
 * The worker process purges a data disk by the disk's own sanitize or format command, and waits for the end that the disk's log reports. If an
 * earlier worker process of the task has started the purge, the present worker process only waits for the end. If the worker process cannot read a
 * fact about the disk, the cleaning step ends as `failed`.
 */
export async function purgeDisk(input: Input, run: WorkRun, timing: PurgeTiming = PURGE_TIMING): Promise<StepEnd> {
  const journal = purgeJournal(run.root, input.serial);
  const read = journal.read();
  const about = failedEvidence(input.task_id, input.serial, read);
  if (!read.ok) return ended("failed", read.detail, "journal_unreadable", about);
  const { entry: earlier } = read;
  if (earlier?.task_id === input.task_id && earlier.end !== null) return earlier.end;
  const picture = readDiskPicture(run.root);
  const verdict = judgeDisk(picture, input, input.may_unmount);
  if (!verdict.mayErase) return ended("failed", verdict.detail, verdict.reason, about);
  const { device, mounts } = verdict;
  const drive = driveOf(device, picture, attemptsBelow(run.root));
  if (drive === null)
    return ended("unsupported", `The agent has no command that purges ${device.name}.`, "no_purge_command", about);
  const facts = await factsOf(drive, earlier);
  if (!facts.ok) return ended(outcomeOf(facts.reason), facts.detail, facts.reason, { ...about, device: device.name });
  const purge: Purge = { run, input, timing, device, drive, facts, journal };
  if (earlier?.state !== "started" && !facts.choice.ok) return refusedChoice(purge, facts.choice);
  const released = await releaseDisk(run, input, { device, picture, mounts }, earlier);
  if (!released.ok) return ended("failed", released.detail, released.reason, { ...evidenceOf(purge), ...about });
  const claim = await claimDisk(run.root, device, picture);
  if (!claim.ok) return ended("failed", claim.detail, "in_use", { ...evidenceOf(purge), ...about });
  try {
    return await proceed(purge, earlier);
  } finally {
    claim.release();
  }
}

/** A worker process that was lost during a security erase may have left a password on the disk, and only the agent's journal shows this. */
async function factsOf(drive: Drive, earlier: PurgeEntry | null): Promise<DriveFacts | DriveRefusal> {
  const facts = await drive.facts();
  if (earlier?.state !== "started" || !setsPassword(earlier.technique)) return facts;
  if (!facts.ok || facts.choice.ok || facts.choice.reason !== "disk_locked") return facts;
  await drive.clearPassword();
  return drive.facts();
}

/**
 * The agent begins a purge unless the disk's journal names a purge that may still run. The agent takes over a purge of another task only while the
 * disk still runs this purge, because programs may have written to the disk after its end. The agent sends the disk no second purge command while an
 * earlier command may still run.
 */
async function proceed(purge: Purge, earlier: PurgeEntry | null): Promise<StepEnd> {
  const { input, facts, journal } = purge;
  if (earlier?.state !== "started") return begin(purge);
  const isOwn = earlier.task_id === input.task_id;
  // A disk that answers commands is not busy with an erase by a password, so the agent may send the purge command once more.
  if (setsPassword(earlier.technique)) return begin(purge);
  if (!TECHNIQUES[earlier.technique].hasLog)
    return isOwn || earlier.boot_id === kernelBootId()
      ? stillStarted(purge, earlier, "end_unknown", FORMAT_UNKNOWN)
      : begin(purge);
  if (isOwn) return follow(purge, earlier);
  if (facts.status === null)
    return stillStarted(
      purge,
      earlier,
      "log_unreadable",
      "An earlier task began a sanitize, and its log is unreadable.",
    );
  if (judgeProgress(earlier.technique, facts.status).kind !== "running") return begin(purge);
  const adopted = { ...earlier, task_id: input.task_id, adopted_task: earlier.adopted_task ?? earlier.task_id };
  journal.write(adopted);
  return follow(purge, adopted);
}

/** A restart of the host resets the disk's controller, which ends a format. */
const FORMAT_UNKNOWN =
  "The end of a format that was sent to the disk is unknown. Restart the host, then purge the disk again.";

const ERASE_UNKNOWN = `The end of the security erase is unknown. Purge the disk again, which removes the password ${ERASE_PASSWORD}.`;

const evidenceOf = ({ device, facts }: Purge): StepEnd["evidence"] => ({
  media_kind: "disk",
  model: facts.model,
  serial: device.serial,
  firmware: facts.firmware,
  device: device.name,
  tool: facts.tool,
  tool_version: facts.toolVersion,
  bytes_total: facts.bytes,
});

const refusedChoice = (purge: Purge, { reason, detail }: Extract<TechniqueChoice, { readonly ok: false }>): StepEnd =>
  ended(outcomeOf(reason), detail, reason, evidenceOf(purge));

async function begin(purge: Purge): Promise<StepEnd> {
  const { run, input, device, facts, journal, timing } = purge;
  if (!facts.choice.ok) return refusedChoice(purge, facts.choice);
  const { technique } = facts.choice;
  const entry: PurgeEntry = {
    format: "muster-purge/1",
    serial: input.serial,
    task_id: input.task_id,
    adopted_task: null,
    boot_id: kernelBootId(),
    state: "marking",
    technique,
    seed: input.seed ?? randomBytes(32).toString("hex"),
    blocks: Math.floor(device.bytes / BLOCK_BYTES),
    status_before: facts.status?.raw ?? "no log",
    facts: evidenceOf(purge),
    end: null,
  };
  if (entry.blocks < 1) return ended("failed", `${device.name} has no size.`, "facts_unreadable", evidenceOf(purge));
  // Since the agent read the disk's facts, Linux may have given the disk's name to another disk.
  const before = await sameDrive(purge);
  if (!before.ok) return ended("failed", before.detail, before.reason, evidenceOf(purge));
  journal.write(entry);
  const marked = { ...evidenceOf(purge), markers_written: true, command_sent: false };
  const fault = mark(run.root, device.name, entry);
  if (fault !== null)
    return ended("failed", `${fault} The agent has overwritten blocks of the disk.`, "marker_failed", marked);
  // The agent needs some time to mark blocks of the disk, so just before the purge command it checks again whether it still may erase the disk.
  const again = await sameDrive(purge);
  if (!again.ok)
    return ended("failed", `${again.detail} The agent has overwritten blocks of the disk.`, again.reason, marked);
  run.throwIfStopped();
  const started: PurgeEntry = { ...entry, state: "started" };
  journal.write(started);
  tellBegin(purge);
  const end = await again.drive.start(technique, timing.patienceOf(technique, facts.status));
  if (end.kind === "refused" && !(await isRunning(again.drive, technique)))
    return failedPurge(purge, started, "start_refused", `The disk did not accept the command: ${end.detail}`);
  if (TECHNIQUES[technique].hasLog) return follow(purge, started);
  return end.kind === "accepted"
    ? sample(purge, started, "the command ended without error")
    : stillStarted(
        purge,
        started,
        "end_unknown",
        `${setsPassword(technique) ? ERASE_UNKNOWN : FORMAT_UNKNOWN} ${end.detail}`,
      );
}

const tellBegin = ({ run, device }: Purge): void => run.progress({ step: `purge ${device.name}`, done: 0, bytes: 0 });

type SameDrive =
  | { readonly ok: true; readonly drive: Drive }
  | { readonly ok: false; readonly reason: string; readonly detail: string };

/**
 * Reads the facts about a disk once more, and returns the disk's purge commands only if the device name still leads to the same disk and the disk is
 * still free.
 */
async function sameDrive({ run, input, device, facts }: Purge): Promise<SameDrive> {
  const refuse = (reason: string, detail: string): SameDrive => ({ ok: false, reason, detail });
  const picture = readDiskPicture(run.root);
  const verdict = judgeDisk(picture, input);
  if (!verdict.mayErase) return refuse(verdict.reason, verdict.detail);
  const { name, number, bytes } = verdict.device;
  if (name !== device.name || number !== device.number || bytes !== device.bytes)
    return refuse("in_use", "The disk has another name, number or size now.");
  const drive = driveOf(verdict.device, picture, attemptsBelow(run.root));
  if (drive === null) return refuse("no_purge_command", `The agent has no command that purges ${name} now.`);
  const now = await drive.facts();
  if (!now.ok) return refuse(now.reason, now.detail);
  if (!now.choice.ok) return refuse(now.choice.reason, now.choice.detail);
  const isSame = now.model === facts.model && now.firmware === facts.firmware;
  const users = await stillOpenedBy(run.root, verdict.device, picture);
  if (users !== null) return refuse("in_use", users);
  return isSame && facts.choice.ok && now.choice.technique === facts.choice.technique
    ? { ok: true, drive }
    : refuse("other_disk", `${name} reports another model, firmware or purge command than before.`);
}

/** The disk may run the sanitize although the tool ended with an error, for example after a time-out. */
async function isRunning(drive: Drive, technique: Technique): Promise<boolean> {
  const status = TECHNIQUES[technique].hasLog ? await drive.status() : null;
  return status !== null && judgeProgress(technique, status).kind === "running";
}

/**
 * Returns why a purge that still runs has taken too long, or null while the agent waits for it. The agent waits for a slow disk as long as the disk's
 * purge makes progress.
 */
function lateness(
  advancedAt: number,
  patience: number,
  began: number,
  waitWithin: number,
): { readonly reason: "no_progress" | "deadline_passed"; readonly detail: string } | null {
  const now = performance.now();
  if (now - advancedAt > patience * 1000) {
    const hours = Math.round(patience / 360) / 10;
    return {
      reason: "no_progress",
      detail: `The disk's sanitize did not advance for ${hours} hours. Replace the disk.`,
    };
  }
  return now - began > waitWithin * 1000
    ? { reason: "deadline_passed", detail: "The disk did not end its sanitize in time. Replace the disk." }
    : null;
}

/** After the disk's log has reported the end of the purge, the agent reads the randomly chosen blocks that it marked before the purge. */
async function follow(purge: Purge, entry: PurgeEntry): Promise<StepEnd> {
  const { run, device, drive, facts, timing } = purge;
  const { technique } = entry;
  tellBegin(purge);
  const began = performance.now();
  const patience = timing.patienceOf(technique, facts.status);
  let seen: Advance | null = null;
  for (let misses = 0; ; await sleep(timing.lookEveryMs, undefined, { signal: run.signal }).catch(() => undefined)) {
    run.throwIfStopped();
    const status = await drive.status();
    misses = status === null ? misses + 1 : 0;
    if (misses >= timing.mostMisses)
      return stillStarted(purge, entry, "log_unreadable", "The sanitize log cannot be read any more.");
    if (status !== null) {
      const progress = judgeProgress(technique, status);
      if (progress.kind === "done") return sample(purge, entry, status.raw);
      if (progress.kind === "failed") return failedPurge(purge, entry, progress.reason, progress.detail, status.raw);
      seen = advanced(seen, performance.now(), progress.share);
      run.progress({
        step: progressText(device.name, seen, new Date()),
        done: Math.floor(seen.last.share * 100),
        bytes: Math.round(seen.last.share * device.bytes),
      });
    }
    const late = lateness(seen?.last.at ?? began, patience, began, timing.waitWithin);
    if (late !== null) return stillStarted(purge, entry, late.reason, late.detail);
  }
}

const fullEvidence = (purge: Purge, entry: PurgeEntry, statusAfter: string): StepEnd["evidence"] => ({
  ...evidenceOf(purge),
  technique: TECHNIQUES[entry.technique].title,
  // If an earlier task sent the purge command, the present task has no sanitize status from before the command.
  ...(entry.adopted_task === null ? { status_before: entry.status_before } : { adopted_task: entry.adopted_task }),
  status_after: statusAfter,
});

/** The agent no longer waits for the end of a disk's purge command: the cleaning step ends as `failed`, although the disk may still be at work. */
const stillStarted = (purge: Purge, entry: PurgeEntry, reason: PurgeFailure, detail: string): StepEnd =>
  ended("failed", detail, reason, {
    ...fullEvidence(purge, entry, "unknown"),
    markers_written: true,
    command_sent: true,
  });

function failedPurge(
  purge: Purge,
  entry: PurgeEntry,
  reason: PurgeFailure,
  detail: string,
  statusAfter = "unknown",
): StepEnd {
  const end = ended("failed", detail, reason, {
    ...fullEvidence(purge, entry, statusAfter),
    markers_written: true,
    command_sent: true,
  });
  purge.journal.write({ ...entry, state: "ended", end });
  return end;
}

function sample(purge: Purge, entry: PurgeEntry, statusAfter: string): StepEnd {
  const { technique } = entry;
  const { count, verdict } = readSample(purge.run.root, purge.device.name, entry);
  const verified = {
    ...fullEvidence(purge, entry, statusAfter),
    verification: `markers at ${count} blocks of ${BLOCK_BYTES} bytes`,
    sample_seed: entry.seed,
    verification_result: verdict.result,
  };
  const title = TECHNIQUES[technique].title;
  const end: StepEnd =
    verdict.reason === null
      ? {
          outcome: "ok",
          message: `${title}: the disk reports the end, and ${verdict.result}.`,
          evidence: { ...verified, method: TECHNIQUES[technique].method, bytes_treated: purge.facts.bytes },
        }
      : ended("failed", `${title} ended, but ${verdict.result}. The disk is not clean.`, verdict.reason, verified);
  purge.journal.write({ ...entry, state: "ended", end });
  return end;
}
