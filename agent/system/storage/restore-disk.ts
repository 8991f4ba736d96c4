import { type DiskPart, makeCommand, partitionsIn } from "../../storage/disk-layout.ts";
import { type DiskPicture, judgeDisk } from "../../storage/disk-rules.ts";
import { type AttemptTool, attemptsBelow } from "../attempt.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { readDiskPicture } from "./block-devices.ts";
import { holdDevice } from "./direct-disk.ts";
import type { JournalRead } from "./disk-journal.ts";
import { failedEnd, type RestoreFailure, restoredEnd } from "./file-system-end.ts";
import { type LayoutEntry, type LayoutJournal, layoutJournal } from "./layout-journal.ts";
import { fault, isAtPlace, mountPart, restoreFolder, settleDevices } from "./mount-disk.ts";
import { probeDevice } from "./probe-device.ts";
import { type PurgeEntry, purgeJournal } from "./purge-journal.ts";
import { readSample } from "./purge-marks.ts";
import { deviceOf, mountBack } from "./release-disk.ts";
import { type FileSystemEnd, NOT_MOUNTED } from "./works.ts";

/** How many milliseconds `mkfs` may take, which first discards all blocks of the disk. */
const MAKE_TIMEOUT_MS = 1_800_000;
const TABLE_TIMEOUT_MS = 120_000;

interface Restore {
  readonly run: WorkRun;
  readonly attempt: AttemptTool;
  readonly journal: LayoutJournal;
  readonly entry: LayoutEntry;
}

class RestoreFault extends Error {
  override readonly name = "RestoreFault";
  readonly reason: RestoreFailure;
  readonly isMade: boolean;
  constructor(reason: RestoreFailure, detail: string, isMade = false) {
    super(detail);
    this.reason = reason;
    this.isMade = isMade;
  }
}

/** Returns the journal entry of a disk whose file systems the agent has not yet all brought back; null for every other disk. */
function owedTo(root: string, serial: string): LayoutEntry | null {
  const read = layoutJournal(root, serial).read();
  return read.ok && read.entry !== null && read.entry.state !== "restored" ? read.entry : null;
}

/** True if the file systems that a disk's journal entry names are on the disk, because they are intact or made again. */
const isMadeOf = (root: string, entry: LayoutEntry): boolean =>
  entry.state === "mounting" || isIntact(entry, purgeJournal(root, entry.serial).read());

const BY_ANOTHER_TASK =
  "An earlier storage cleanup unmounted the disk and did not mount it again. The disk may keep data.";

/** Returns the file systems that another task unmounted, except those that somebody has mounted at their mount points since. */
export function unmountedByOthers(root: string, entry: LayoutEntry, picture: DiskPicture): FileSystemEnd[] {
  const isMade = isMadeOf(root, entry);
  return entry.layout.parts
    .filter((part) => !isAtPlace(root, part, deviceOf(picture, entry, part)?.number ?? null))
    .map((part) => failedEnd(entry, part, NOT_MOUNTED, BY_ANOTHER_TASK, isMade));
}

/** Returns what became of the file systems of a disk whose worker process was lost. */
export function lostFileSystems(root: string, taskId: string, serial: string): FileSystemEnd[] {
  const entry = owedTo(root, serial);
  if (entry === null) return [];
  if (entry.task_id !== taskId) return unmountedByOthers(root, entry, readDiskPicture(root));
  const isMade = isMadeOf(root, entry);
  const detail = `The worker process was lost in the state ${entry.state}.`;
  return entry.layout.parts.map((part) => failedEnd(entry, part, "worker_lost", detail, isMade));
}

/**
 * True if the disk's file systems are the same as before its purge. If the journal of the disk's purge is unreadable, a purge may have begun, so the
 * disk's file systems do not count as intact.
 */
const isIntact = (entry: LayoutEntry, purged: JournalRead<PurgeEntry>): boolean =>
  entry.is_intact && purged.ok && purged.entry?.task_id !== entry.task_id;

/**
 * After the end of a disk's purge, the agent brings the disk's file systems back to their mount points. After a refusal before the first write to the
 * disk, `restoreDisk` only mounts the intact file systems again. `restoreDisk` makes new file systems only if the task's own purge ended well. A
 * worker process of the task continues the restore of the disk where a lost worker process of the same task ended.
 */
export async function restoreDisk(
  run: WorkRun,
  { task_id, serial }: { readonly task_id: string; readonly serial: string },
): Promise<FileSystemEnd[]> {
  const entry = owedTo(run.root, serial);
  if (entry === null) return [];
  // The disk's journal entry still belongs to an earlier task, because the agent refused this task's purge before this task took over the entry.
  if (entry.task_id !== task_id) return unmountedByOthers(run.root, entry, readDiskPicture(run.root));
  const restore: Restore = {
    run,
    attempt: attemptsBelow(run.root),
    journal: layoutJournal(run.root, serial),
    entry,
  };
  const { parts } = entry.layout;
  const failed = (reason: RestoreFailure, detail: string, isMade: boolean): FileSystemEnd[] =>
    parts.map((part) => failedEnd(entry, part, reason, detail, isMade));
  const purged = purgeJournal(run.root, serial).read();
  if (isIntact(entry, purged)) {
    const detail = await mountBack(run, restore.journal, entry, readDiskPicture(run.root), restore.attempt);
    return detail === null ? [] : failed("mount_failed", detail, true);
  }
  const own = purged.ok && purged.entry?.task_id === task_id ? purged.entry : null;
  if (own?.end?.outcome !== "ok") return failed("file_system_missing", "The purge began, and did not end well.", false);
  try {
    if (entry.state !== "mounting") await makeAll(restore, own);
    await mountAll(restore);
  } catch (error) {
    if (error instanceof RestoreFault) return failed(error.reason, error.message, error.isMade);
    throw error;
  }
  return parts.map((part) =>
    restoredEnd(
      entry,
      part,
      `The file system ${part.type} was made again with its label and UUID, and is mounted by ${part.mounted_by}.`,
    ),
  );
}

/** The agent makes file systems only on a disk whose purge has ended, or on which a lost worker process of the task has begun to make them. */
async function makeAll(restore: Restore, purged: PurgeEntry): Promise<void> {
  const { run, journal, entry } = restore;
  const { table, parts } = entry.layout;
  const verdict = judgeDisk(readDiskPicture(run.root), { serial: entry.serial, wwn: null });
  if (!verdict.mayErase) throw new RestoreFault("disk_refused", `${verdict.reason}: ${verdict.detail}`);
  const { name: disk } = verdict.device;
  run.progress({ step: `mkfs ${disk}`, done: 0, bytes: 0 });
  await whileHeld(restore, null, async (path) => {
    await requireBlank(restore, purged, disk, path);
    if (entry.state !== "making") journal.write({ ...entry, state: "making", is_intact: false, device: disk });
    if (table !== null) await makeTable(restore, table, disk, path);
    for (const part of parts) await whileHeld(restore, part, (device) => makePart(restore, part, device));
  });
  journal.write({ ...entry, state: "mounting", is_intact: false, device: disk });
}

/**
 * The agent holds the device of a disk or partition open while tools work on it. Linux may give a name such as `/dev/sdb` to another disk at any
 * moment. A tool that opened a disk by its device name could destroy another disk that has got the name meanwhile. To work on the right disk, the
 * tools get the path of the open descriptor. The agent compares the disk's serial number once before the tools work and once after them, because the
 * number of a held device cannot change.
 */
async function whileHeld(
  { run: { root }, entry }: Restore,
  part: DiskPart | null,
  work: (path: string) => Promise<void>,
): Promise<void> {
  const partition = part?.partition ?? null;
  const now = () => deviceOf(readDiskPicture(root), entry, { partition });
  const device = now();
  const held = device === null ? null : holdDevice(root, device);
  if (device === null || held === null)
    throw new RestoreFault("disk_refused", "The name of the disk leads to another device.");
  const requireSame = (): void => {
    if (now()?.number !== device.number)
      throw new RestoreFault("disk_refused", `The disk ${entry.serial} has disappeared, or has another number now.`);
  };
  try {
    requireSame();
    await work(held.path);
    requireSame();
  } finally {
    held.close();
  }
}

async function requireBlank(
  { run, attempt, entry }: Restore,
  purged: PurgeEntry,
  disk: string,
  path: string,
): Promise<void> {
  const { table, parts } = entry.layout;
  const probe = await probeDevice(path, attempt);
  if (probe === null) throw new RestoreFault("not_blank", `blkid cannot read ${disk}.`);
  const isBlank = ![...probe.keys()].some((key) => ["TYPE", "PTTYPE", "USAGE"].includes(key));
  const isOwn = table === null ? probe.get("UUID") === parts[0]?.uuid : isTable(table, probe.get("PTUUID"));
  if (entry.state === "making" ? !isBlank && !isOwn : !isBlank)
    throw new RestoreFault("not_blank", `Something was written to ${disk} since its purge.`);
  if (entry.state === "making") return;
  const { verdict: sample } = readSample(run.root, disk, purged);
  if (sample.reason !== null) throw new RestoreFault("not_blank", `Of the purged disk ${disk} ${sample.result}.`);
}

const isTable = (table: string, uuid: string | undefined): boolean =>
  uuid !== undefined && new RegExp(`^label-id: (0x)?${uuid}$`, "im").test(table);

async function makeTable({ attempt, entry }: Restore, table: string, disk: string, path: string): Promise<void> {
  const failed = await fault(
    { tool: "sfdisk", args: ["--quiet", "--wipe", "never", "--wipe-partitions", "never", path] },
    attempt,
    TABLE_TIMEOUT_MS,
    table.replaceAll(`/dev/${entry.device}`, `/dev/${disk}`),
  );
  if (failed !== null) throw new RestoreFault("table_failed", failed);
  const unsettled = await settleDevices(attempt);
  if (unsettled !== null) throw new RestoreFault("table_failed", unsettled);
  const end = await attempt("sfdisk", ["--dump", path], { timeoutMs: TABLE_TIMEOUT_MS });
  const made = end.kind === "ended" ? partitionsIn(end.stdout) : null;
  if (JSON.stringify(made) !== JSON.stringify(partitionsIn(table)))
    throw new RestoreFault("table_failed", `${disk} does not have its partitions after sfdisk.`);
}

async function makePart({ attempt }: Restore, part: DiskPart, path: string): Promise<void> {
  const failed = await fault(makeCommand(part, path), attempt, MAKE_TIMEOUT_MS);
  if (failed !== null) throw new RestoreFault("mkfs_failed", failed);
  const made = await probeDevice(path, attempt);
  if (made?.get("TYPE") !== part.type || made.get("UUID") !== part.uuid || (made.get("LABEL") ?? null) !== part.label)
    throw new RestoreFault(
      "mkfs_failed",
      `The device for ${part.path} does not have its type, label and UUID after ${part.type} was made.`,
    );
}

async function mountAll({ run, attempt, journal, entry }: Restore): Promise<void> {
  run.progress({ step: `mount ${entry.device}`, done: 0, bytes: 0 });
  const unsettled = await settleDevices(attempt);
  if (unsettled !== null) throw new RestoreFault("mount_failed", unsettled, true);
  const picture = readDiskPicture(run.root);
  for (const part of entry.layout.parts) {
    const device = deviceOf(picture, entry, part);
    if (device === null) throw new RestoreFault("mount_failed", "Its device has disappeared.", true);
    const failed = await mountPart(run.root, part, device, attempt);
    if (failed !== null) throw new RestoreFault(failed.reason, failed.detail, true);
    const folder = restoreFolder(run.root, part);
    if (folder !== null) throw new RestoreFault("folder_failed", folder, true);
  }
  journal.write({ ...entry, state: "restored", is_intact: true });
}
