import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { messageOf } from "../../message-of.ts";
import { type BlockDevice, judgeDisk } from "../../storage/disk-rules.ts";
import { type Drive, type DriveFacts, driveOf } from "../../storage/drive.ts";
import {
  BLOCK_BYTES,
  drawBlocks,
  judgeSample,
  lookAt,
  markerOf,
  type SampleVerdict,
} from "../../storage/purge-sample.ts";
import {
  judgeProgress,
  outcomeOf,
  type PurgeFailure,
  patienceOf,
  type SanitizeStatus,
  TECHNIQUES,
  type Technique,
} from "../../storage/purge-technique.ts";
import { attemptsBelow } from "../attempt.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { readDiskPicture } from "./block-devices.ts";
import { claimDisk, openDirect, stillOpenedBy } from "./direct-disk.ts";
import { type PurgeEntry, type PurgeJournal, purgeJournal } from "./purge-journal.ts";
import type { PURGE_DISK, StepEnd } from "./works.ts";

type Input = z.output<typeof PURGE_DISK.input>;

const LOOK_EVERY_MS = 1_000;
/** How many times in a row the sanitize status may be unreadable before the agent gives up the wait. A reset of the disk takes some seconds. */
const MOST_MISSES = 30;

/** One disk that the worker process purges, with all that the steps of the purge need. */
interface Purge {
  readonly run: WorkRun;
  readonly input: Input;
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
 * Purges one data disk by its own sanitize or format command, and waits for the end that the disk's log reports. A worker process that finds a
 * started purge of its own task, or a running sanitize that the agent started, only waits. Whatever cannot be read ends the step as `failed`.
 */
export async function purgeDisk(input: Input, run: WorkRun): Promise<StepEnd> {
  const picture = readDiskPicture(run.root);
  const verdict = judgeDisk(picture, input);
  if (!verdict.mayErase) return ended("failed", verdict.detail, verdict.reason);
  const { device } = verdict;
  const drive = driveOf(device, picture, attemptsBelow(run.root));
  if (drive === null)
    return ended("unsupported", `The agent has no command that purges ${device.name}.`, "no_purge_command");
  const facts = await drive.facts();
  if (!facts.ok) return ended(outcomeOf(facts.reason), facts.detail, facts.reason, { device: device.name });
  const purge: Purge = { run, input, device, drive, facts, journal: purgeJournal(run.root, input.serial) };
  const earlier = purge.journal.read();
  if (earlier?.task_id === input.task_id && earlier.end !== null) return earlier.end;
  const claim = await claimDisk(run.root, device, picture);
  if (!claim.ok) return ended("failed", claim.detail, "in_use", evidenceOf(purge));
  try {
    if (earlier !== null && continues(earlier, input, facts.status)) return await follow(purge, earlier);
    return await begin(purge);
  } finally {
    claim.release();
  }
}

/**
 * Whether the purge of the journal is the one to wait for. A purge that another task started counts only while the disk still runs it: a purge that
 * has ended says nothing about what was written since.
 */
function continues(earlier: PurgeEntry, input: Input, status: SanitizeStatus | null): boolean {
  if (earlier.state !== "started") return false;
  if (earlier.task_id === input.task_id) return true;
  return status !== null && judgeProgress(earlier.technique, status).kind === "running";
}

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

async function begin(purge: Purge): Promise<StepEnd> {
  const { run, input, device, drive, facts, journal } = purge;
  if (!facts.choice.ok)
    return ended(outcomeOf(facts.choice.reason), facts.choice.detail, facts.choice.reason, evidenceOf(purge));
  const { technique } = facts.choice;
  const entry: PurgeEntry = {
    format: "muster-purge/1",
    serial: input.serial,
    task_id: input.task_id,
    state: "started",
    technique,
    seed: input.seed ?? randomBytes(32).toString("hex"),
    blocks: Math.floor(device.bytes / BLOCK_BYTES),
    status_before: facts.status?.raw ?? "no log",
    end: null,
  };
  if (entry.blocks < 1) return ended("failed", `${device.name} has no size.`, "facts_unreadable", evidenceOf(purge));
  const fault = await mark(purge, entry);
  if (fault !== null) return ended("failed", fault, "marker_failed", evidenceOf(purge));
  // The marks took some time, so the agent judges the disk once more just before the command.
  const picture = readDiskPicture(run.root);
  const again = judgeDisk(picture, input);
  if (!again.mayErase || again.device.number !== device.number)
    return ended("failed", again.mayErase ? "The disk has another number now." : again.detail, "in_use");
  const users = await stillOpenedBy(run.root, device, picture);
  if (users !== null) return ended("failed", users, "in_use");
  run.throwIfStopped();
  journal.write(entry);
  run.progress({ step: `purge ${device.name}`, done: 0, bytes: 0 });
  const refused = await drive.start(technique, patienceOf(technique, facts.status));
  if (refused !== null && !(await isRunning(drive, technique)))
    return failedPurge(purge, entry, "start_refused", `The disk did not accept the command: ${refused}`);
  return TECHNIQUES[technique].hasLog ? follow(purge, entry) : sample(purge, entry, "the command ended without error");
}

/** Whether a disk runs the sanitize although the tool that started it ended with an error, for example after a time-out. */
async function isRunning(drive: Drive, technique: Technique): Promise<boolean> {
  const status = TECHNIQUES[technique].hasLog ? await drive.status() : null;
  return status !== null && judgeProgress(technique, status).kind === "running";
}

/** Writes the markers of the sample and reads them back. Returns why that failed, or null. */
async function mark({ run, device }: Purge, { seed, blocks }: PurgeEntry): Promise<string | null> {
  try {
    const disk = openDirect(run.root, device.name, "write");
    try {
      const drawn = drawBlocks(seed, blocks);
      for (const block of drawn) disk.write(block, markerOf(seed, block));
      disk.flush();
      const lost = drawn.find((block) => disk.read(block)?.equals(markerOf(seed, block)) !== true);
      return lost === undefined ? null : `Block ${lost} of ${device.name} does not keep what is written to it.`;
    } finally {
      disk.close();
    }
  } catch (error) {
    return `The blocks of ${device.name} cannot be written: ${messageOf(error)}`;
  }
}

/** Waits until the disk's log says that the started purge is over, and then reads the sample. */
async function follow(purge: Purge, entry: PurgeEntry): Promise<StepEnd> {
  const { run, device, drive, facts } = purge;
  const { technique } = entry;
  if (!TECHNIQUES[technique].hasLog)
    return failedPurge(purge, entry, "end_unknown", "The worker of a format was lost, and a format has no log.");
  const until = performance.now() + patienceOf(technique, facts.status) * 1000;
  for (let misses = 0; ; await sleep(LOOK_EVERY_MS, undefined, { signal: run.signal }).catch(() => undefined)) {
    run.throwIfStopped();
    const status = await drive.status();
    misses = status === null ? misses + 1 : 0;
    if (misses >= MOST_MISSES)
      return stillStarted(purge, entry, "log_unreadable", "The sanitize log cannot be read any more.");
    if (status !== null) {
      const progress = judgeProgress(technique, status);
      if (progress.kind === "done") return sample(purge, entry, status.raw);
      if (progress.kind === "failed") return failedPurge(purge, entry, progress.reason, progress.detail, status.raw);
      run.progress({
        step: `purge ${device.name}`,
        done: Math.round(progress.share * 100),
        bytes: Math.round(progress.share * device.bytes),
      });
    }
    if (performance.now() > until)
      return stillStarted(purge, entry, "deadline_passed", "The disk did not end its sanitize in time. Replace it.");
  }
}

const fullEvidence = (purge: Purge, entry: PurgeEntry, statusAfter: string): StepEnd["evidence"] => ({
  ...evidenceOf(purge),
  technique: TECHNIQUES[entry.technique].title,
  status_before: entry.status_before,
  status_after: statusAfter,
});

/** The end of a purge whose end the disk has not reported: the journal keeps `started`, so that a later task waits for the same purge. */
const stillStarted = (purge: Purge, entry: PurgeEntry, reason: PurgeFailure, detail: string): StepEnd =>
  ended("failed", detail, reason, fullEvidence(purge, entry, "unknown"));

function failedPurge(
  purge: Purge,
  entry: PurgeEntry,
  reason: PurgeFailure,
  detail: string,
  statusAfter = "unknown",
): StepEnd {
  const end = ended("failed", detail, reason, fullEvidence(purge, entry, statusAfter));
  purge.journal.write({ ...entry, state: "ended", end });
  return end;
}

/** Reads the sample's blocks, and ends the purge. */
function sample(purge: Purge, entry: PurgeEntry, statusAfter: string): StepEnd {
  const { technique } = entry;
  const { count, verdict } = readSample(purge, entry);
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

function readSample(
  { run, device }: Purge,
  { technique, seed, blocks }: PurgeEntry,
): { readonly count: number; readonly verdict: SampleVerdict } {
  const drawn = drawBlocks(seed, blocks);
  try {
    const disk = openDirect(run.root, device.name, "read");
    try {
      const looks = drawn.map((block) => lookAt(disk.read(block), markerOf(seed, block)));
      return { count: drawn.length, verdict: judgeSample(technique, looks) };
    } finally {
      disk.close();
    }
  } catch (error) {
    const result = `the sample cannot be read: ${messageOf(error)}`.slice(0, 200);
    return { count: drawn.length, verdict: { reason: "sample_unreadable", result } };
  }
}
