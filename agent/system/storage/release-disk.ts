import type { z } from "zod";
import { type DiskPart, describeParts } from "../../storage/disk-layout.ts";
import { type BlockDevice, type DiskMount, type DiskPicture, judgeDisk } from "../../storage/disk-rules.ts";
import { type AttemptTool, attemptsBelow } from "../attempt.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { readDiskPicture } from "./block-devices.ts";
import { type LayoutEntry, type LayoutJournal, layoutJournal } from "./layout-journal.ts";
import { mountPart, mountsAt, unmount, usersOf } from "./mount-disk.ts";
import type { PurgeEntry } from "./purge-journal.ts";
import { readLayout } from "./read-layout.ts";
import { twinRefusal } from "./twin-file-system.ts";
import type { PURGE_DISK } from "./works.ts";

type Input = z.output<typeof PURGE_DISK.input>;

export type Released = { readonly ok: true } | { readonly ok: false; readonly reason: string; readonly detail: string };

interface Disk {
  readonly device: BlockDevice;
  readonly picture: DiskPicture;
  readonly mounts: readonly DiskMount[];
}

/**
 * Before the purge of a mounted disk, the agent records the disk's file systems and unmounts them. For a disk that is not mounted, `releaseDisk`
 * takes over the file systems that an earlier task unmounted and did not bring back. `earlier` is the journal entry of the last purge of the disk.
 */
export async function releaseDisk(
  run: WorkRun,
  input: Input,
  found: Disk,
  earlier: PurgeEntry | null,
): Promise<Released> {
  const { root } = run;
  const { device } = found;
  const taskId = input.task_id;
  const serial = device.serial ?? "";
  const journal = layoutJournal(root, serial);
  const read = journal.read();
  if (!read.ok) return { ok: false, reason: "journal_unreadable", detail: read.detail };
  const owed = read.entry?.state === "restored" ? null : read.entry;
  // If the task that wrote the journal entry also began a purge, blocks may be overwritten, and then only a new file system repairs the disk.
  const isIntact = owed?.is_intact === true && earlier?.task_id !== owed.task_id;
  const attempt = attemptsBelow(root);
  if (found.mounts.length === 0) {
    if (owed === null) return { ok: true };
    const twin = await twinRefusal(root, device.name, owed.layout.parts, found.picture, attempt);
    if (twin !== null) return twin;
    journal.write({ ...owed, task_id: taskId, device: device.name, state: "unmounted", is_intact: isIntact });
    return { ok: true };
  }
  const whole = owed === null ? found : await withAllMounts(run, input, found, owed, isIntact);
  if ("ok" in whole) return whole;
  const { picture, mounts } = whole;
  const layout = await readLayout(root, device, picture, mounts, attempt);
  if (!layout.ok) return layout;
  const parts = layout.layout.parts.map((part) => withOwedFolder(part, owed));
  const users = parts.map(({ path }) => usersOf(root, path)).find((one) => one !== null);
  if (users !== undefined && users !== null) return { ok: false, reason: "in_use", detail: users };
  const entry: LayoutEntry = {
    format: "muster-layout/1",
    serial,
    task_id: taskId,
    state: "unmounting",
    device: device.name,
    is_intact: true,
    layout: { ...layout.layout, parts },
  };
  journal.write(entry);
  return unmountAll(run, journal, entry, picture, attempt);
}

/**
 * If an earlier worker process was lost between two unmounts or two mounts, the agent mounts the disk's other file systems again. When all file
 * systems of the disk are mounted, the agent records and unmounts them, as for a disk that no earlier worker process had. Until all file systems of
 * the disk are mounted, the journal keeps the entry of the lost worker process.
 */
async function withAllMounts(
  run: WorkRun,
  input: Input,
  found: Disk,
  owed: LayoutEntry,
  isIntact: boolean,
): Promise<Disk | Extract<Released, { readonly ok: false }>> {
  const { root } = run;
  const isMade = isIntact || owed.state === "mounting";
  if (!isMade || owed.layout.parts.every((part) => mountsAt(root, part.path).length > 0)) return found;
  const failed = await mountParts(run, owed, found.picture, attemptsBelow(root));
  if (failed !== null) return { ok: false, reason: "not_mounted", detail: failed };
  const picture = readDiskPicture(root);
  const verdict = judgeDisk(picture, input, input.may_unmount);
  return verdict.mayErase
    ? { device: verdict.device, picture, mounts: verdict.mounts }
    : { ok: false, reason: verdict.reason, detail: verdict.detail };
}

/**
 * If a worker process was lost before it restored the owner and mode of a new file system's root folder, the agent takes the old owner and mode from
 * the journal.
 */
function withOwedFolder(part: DiskPart, owed: LayoutEntry | null): DiskPart {
  const same = owed?.is_intact === false ? owed.layout.parts.find(({ uuid }) => uuid === part.uuid) : undefined;
  return same === undefined ? part : { ...part, uid: same.uid, gid: same.gid, mode: same.mode };
}

async function unmountAll(
  run: WorkRun,
  journal: LayoutJournal,
  entry: LayoutEntry,
  picture: DiskPicture,
  attempt: AttemptTool,
): Promise<Released> {
  for (const { path } of entry.layout.parts) {
    const failed = await unmount(run.root, path, attempt);
    if (failed === null) continue;
    const back = await mountBack(run, journal, entry, picture, attempt);
    const users = usersOf(run.root, path) ?? "";
    return {
      ok: false,
      reason: "in_use",
      detail: `${path} cannot be unmounted: ${failed} ${users} ${back ?? ""}`.trim(),
    };
  }
  journal.write({ ...entry, state: "unmounted" });
  return { ok: true };
}

/**
 * After a refused purge, the agent mounts the intact file systems of the disk again. Returns why a file system could not be mounted, or null if all
 * are mounted.
 */
export async function mountBack(
  run: WorkRun,
  journal: LayoutJournal,
  entry: LayoutEntry,
  picture: DiskPicture,
  attempt: AttemptTool,
): Promise<string | null> {
  const failed = await mountParts(run, entry, picture, attempt);
  if (failed === null) journal.write({ ...entry, state: "restored" });
  return failed;
}

/** Mounts the file systems of a disk that the agent's journal names and that are not mounted. Returns why a mount failed, or null. */
async function mountParts(
  { root, progress }: WorkRun,
  entry: LayoutEntry,
  picture: DiskPicture,
  attempt: AttemptTool,
): Promise<string | null> {
  const faults: string[] = [];
  // A worker process must report progress soon after its start. The worker process reports progress before it mounts the file systems, so that the
  // agent does not kill it during a mount.
  progress({ step: `mount ${entry.device}`, done: 0, bytes: 0 });
  for (const part of entry.layout.parts) {
    const device = deviceOf(picture, entry, part);
    const failed = device === null ? null : await mountPart(root, part, device, attempt);
    if (device === null) faults.push(`${part.path}: its device has disappeared.`);
    else if (failed !== null) faults.push(failed.detail);
  }
  return faults.length === 0 ? null : `Not mounted again: ${describeParts(entry.layout.parts)}. ${faults.join(" ")}`;
}

/** Finds the block device of a file system that the journal names, by the disk's serial number and the partition's number; null if there is none. */
export function deviceOf(
  picture: DiskPicture,
  { serial }: Pick<LayoutEntry, "serial">,
  { partition }: Pick<DiskPart, "partition">,
): BlockDevice | null {
  const disk = picture.devices.find((one) => one.partitionOf === null && !one.isPath && one.serial === serial);
  const parts = picture.devices.filter((one) => one.partitionOf !== null && one.partitionOf === disk?.name);
  const found = partition === null ? disk : parts.find(({ name }) => Number(/(\d+)$/.exec(name)?.[1]) === partition);
  return found ?? null;
}
