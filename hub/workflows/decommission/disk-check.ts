import type { RecordRelease } from "../../../shared/sanitization-record.ts";
import type { DiskSampleOf, Statement } from "../../../shared/sanitization-sentences.ts";
import { TASKS } from "../../../shared/tasks/index.ts";
import { DISK_BLOCK_BYTES, type DisksBefore, type SampledDisk } from "../../../shared/tasks/sample-disks.ts";
import { readTask } from "../../db/queries/task-reads.ts";
import type { Task } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { DecommissionInput } from "./decommission-context.ts";

type Erase = DecommissionInput["erase"];
/** The number of bytes that a quick erase overwrites at each end of a disk. */
const QUICK_BYTES = 2 * 1024 * 1024;

/**
 * A fact that speaks against the erase of one disk. `kept`: a block that the erase must have reached is as before the release. `missing`: the host
 * does not show the disk any more. `unproved`: the hub knows earlier content of the disk, but has compared no block.
 */
export interface DiskFinding {
  readonly about: "kept" | "missing" | "unproved";
  readonly serial: string;
  /** The finding about the disk, in words for operators and for the sanitization record. */
  readonly text: string;
}

/** The result of comparing the blocks of the disks before the release and after the deploy of a reimage. */
export interface DiskCheck {
  readonly findings: readonly DiskFinding[];
  /**
   * The serial numbers that the host shows now and did not show before the release. The list `added` of the serial numbers of new disks is empty if
   * the hub knows no disk of the host from before the release.
   */
  readonly added: readonly string[];
  readonly samples: readonly DiskSampleOf[];
  /** The number of blocks that the hub has compared with their content before the release. */
  readonly compared: number;
  /**
   * The number of disks on which each sampled block holds only one byte, as a secure erase promises. `blank`, the number of disks whose sampled
   * blocks are all blank, is 0 if the new system read any other content on one of the disks, and after any erase but a secure one, because a quick
   * erase promises nothing about random blocks.
   */
  readonly blank: number;
  readonly read: number;
  readonly unread: number;
}

/**
 * True if an erase of the kind `erase` must have changed the given block of a disk. A quick erase does not change the blocks between the two ends of
 * a disk.
 */
export function mustChange(erase: Erase, block: number, bytes: number): boolean {
  if (erase !== "quick") return erase === "secure";
  const at = block * DISK_BLOCK_BYTES;
  return at + DISK_BLOCK_BYTES <= QUICK_BYTES || at >= bytes - QUICK_BYTES;
}

/**
 * Compares the disks that the new system's agent reports with the disks that the earlier system's agent reported. A disk block with the same content
 * as before the release shows that the erase did not reach this block. A disk block with other content than before the release proves nothing by
 * itself, because a disk may return zeros, one byte or noise after an erase.
 */
export function compareDisks(
  erase: Erase,
  before: { readonly disks: readonly SampledDisk[]; readonly serials: readonly string[] },
  after: readonly SampledDisk[],
  more = 0,
): DiskCheck {
  const known = new Set([...before.serials, ...before.disks.flatMap(({ serial }) => serial ?? [])]);
  const shown = new Set(after.flatMap(({ serial }) => serial ?? []));
  const judged = after.flatMap((disk) => judgeDisk(erase, before.disks, disk) ?? []);
  // The agent lists a bounded number of disks, so the host may have a disk that the list lacks.
  const missing = more > 0 ? [] : [...known].filter((serial) => !shown.has(serial));
  return {
    findings: [...judged.flatMap(({ finding }) => finding ?? []), ...missing.map(missingDisk)],
    added: known.size === 0 ? [] : [...shown].filter((serial) => !known.has(serial)),
    samples: judged.map(({ told }) => told),
    compared: judged.reduce((sum, { compared }) => sum + compared, 0),
    blank: erase === "secure" ? blankDisks(after) : 0,
    read: after.filter(({ sample }) => sample !== null).length,
    unread: after.filter(({ sample }) => sample === null).length,
  };
}

/** Returns how many disks the agent read, if each sampled block of each of them was readable and blank; otherwise 0. */
function blankDisks(disks: readonly SampledDisk[]): number {
  const samples = disks.flatMap(({ sample }) => sample ?? []);
  const isBlank = samples.every((one) => one.data === 0 && one.unreadable === 0 && one.zeros + one.one_byte > 0);
  return isBlank ? samples.length : 0;
}

/**
 * Returns what the sanitization record says about the compared disk blocks. A tenant with root rights could have made the earlier system report false
 * block contents, so that every disk block seems changed by the erase. If the tenant had root rights, only what the newly deployed system has read
 * itself counts as evidence of the disk erase.
 */
export function comparedBlocks(
  { compared, blank }: DiskCheck,
  tenancy: { readonly grantsRoot: boolean; readonly rootBy: readonly string[] } | null,
): Pick<RecordRelease, "blocks_compared" | "blocks_doubted" | "disks_blank"> {
  const isDoubted = tenancy !== null && (tenancy.grantsRoot || tenancy.rootBy.length > 0);
  if (!isDoubted) return compared === 0 ? {} : { blocks_compared: compared };
  return { ...(compared === 0 ? {} : { blocks_doubted: compared }), ...(blank === 0 ? {} : { disks_blank: blank }) };
}

const missingDisk = (serial: string): DiskFinding => ({
  about: "missing",
  serial,
  text: `disk ${serial}: the host does not show this disk any more`,
});

interface JudgedDisk {
  readonly finding: DiskFinding | null;
  readonly told: DiskSampleOf;
  readonly compared: number;
}

/**
 * Judges by the samples of one disk whether an erase reached it. `judgeDisk` returns null for a disk without a serial number, because the hub cannot
 * find such a disk among the disks from before the release.
 */
function judgeDisk(erase: Erase, before: readonly SampledDisk[], disk: SampledDisk): JudgedDisk | null {
  const { serial, model, bytes, sample, detail, holds_system } = disk;
  if (serial === null) return null;
  const told = (verification_result: string): DiskSampleOf => ({
    serial,
    model: model === "" ? null : model,
    verification: "random blocks, read after the deploy",
    verification_result: verification_result.slice(0, 256),
  });
  const prints = before.find((one) => one.serial === serial)?.sample?.prints ?? [];
  /** The new system overwrites its own disk, so the hub does not compare the content of that disk. */
  const unproved = (why: string): DiskFinding | null =>
    holds_system || prints.length === 0
      ? null
      : {
          about: "unproved",
          serial,
          text: `disk ${serial}: none of the ${prints.length} blocks from before the release was compared. ${why}`,
        };
  if (sample === null) return { finding: unproved(detail), told: told(`no block was read. ${detail}`), compared: 0 };
  const digests = new Map(prints.map(({ block, digest }) => [block, digest]));
  const compared = sample.again.filter(({ block }) => digests.has(block));
  const same = compared.filter(({ block, digest }) => digests.get(block) === digest);
  const wrong = same.filter(({ block }) => mustChange(erase, block, bytes));
  const { zeros, one_byte, data, unreadable } = sample;
  const saw = `${zeros} blocks of zeros, ${one_byte} of one other byte, ${data} with other content, ${unreadable} unreadable`;
  const since = `${same.length} of ${compared.length} blocks as before the release`;
  const text = `disk ${serial}: ${wrong.length} of ${compared.length} compared blocks have the content from before the release`;
  const kept: DiskFinding | null = wrong.length === 0 ? null : { about: "kept", serial, text };
  const finding = compared.length === 0 ? unproved("None of them is readable.") : kept;
  return { finding, told: told(`${saw}; ${since}`), compared: compared.length };
}

const { input, result } = TASKS["node.sample_disks"];

/** Returns the result of a task that sampled disks, with the key of the sample's digests. `sampledDisks` returns null if the task did not succeed. */
export function sampledDisks(task: Task | null) {
  if (task?.type !== "node.sample_disks" || task.state !== "succeeded") return null;
  const key = input.safeParse(task.input).data?.key;
  const seen = result.safeParse(task.result).data;
  return key === undefined || seen === undefined ? null : { ...seen, key };
}

/** Compares the result of a task on the new system with what the hub knows of the disks before the release. */
export async function readDiskCheck(
  db: Db | Tx,
  erase: Erase,
  known: DisksBefore | null | undefined,
  task: Task,
): Promise<DiskCheck | null> {
  const after = sampledDisks(task);
  if (after === null) return null;
  const earlier = known?.task_id == null ? null : await readTask(db, known.task_id);
  const read = sampledDisks(earlier);
  // The hub cannot compare digests that were made with different keys.
  const disks = read?.key === after.key ? read.disks : [];
  return compareDisks(erase, { disks, serials: known?.serials ?? [] }, after.disks, after.more);
}

/** Returns the facts that speak against the erase of the disks. Without a requested erase, `findingsOf` returns an empty list. */
export const findingsOf = (erase: Erase, { findings }: DiskCheck): readonly DiskFinding[] =>
  erase === "none" ? [] : findings;

export const serialsOf = ({ findings }: DiskCheck, about: DiskFinding["about"]): string[] =>
  findings.filter((one) => one.about === about).map(({ serial }) => serial);

const CONTENT =
  "A read of random blocks shows the content of these blocks only. After an erase a disk may return zeros, one repeated byte or noise, so other content does not show a missing erase.";
const COMPARED =
  "A changed block does not show what happened to the other blocks of its disk. The agent of the earlier system reported the content before the release, and its tenant could have changed this system.";
const NOT_COMPARED = "No block of a disk was compared with its content before the release.";

/** The sentences of the sanitization record about disks that no agent read after the deploy, because a person decided so. */
export const unreadStatement = (person: string): Statement => ({
  claim: `After the deploy the agent did not read the disks, because it has no such task, and ${person} decided to continue.`,
  not_covered: [NOT_COMPARED],
});

/** The sentences of the sanitization record about the disk blocks that the agent read after the deploy of the new system. */
export function diskStatement(check: DiskCheck): Statement {
  const { read, unread, compared, added } = check;
  const [kept, missing] = [serialsOf(check, "kept"), serialsOf(check, "missing")];
  const found =
    kept.length === 0
      ? "no unchanged block that the erase must have changed"
      : `${kept.length} disks with an unchanged block`;
  const claim =
    compared === 0
      ? `After the deploy the agent read random blocks of ${read} disks.`
      : `After the deploy the agent read random blocks of ${read} disks and ${compared} blocks again that the agent of the earlier system had read before the release, and found ${found}.`;
  const gaps = [
    ...(unread === 0
      ? []
      : [`After the deploy ${unread} disks were not read, for example because the new system is on them.`]),
    ...(missing.length === 0 ? [] : [`The host does not show ${missing.length} disks that it had before the release.`]),
    ...(added.length === 0 ? [] : [`The host shows ${added.length} disks that it did not have before the release.`]),
  ];
  return { claim, not_covered: [CONTENT, compared === 0 ? NOT_COMPARED : COMPARED, ...gaps] };
}
