import { type DiskPart, describeParts } from "../../storage/disk-layout.ts";
import type { BlockDevice, DiskMount, DiskPicture } from "../../storage/disk-rules.ts";
import { type AttemptTool, attemptsBelow } from "../attempt.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { type LayoutEntry, type LayoutJournal, layoutJournal } from "./layout-journal.ts";
import { mountPart, unmount, usersOf } from "./mount-disk.ts";
import type { PurgeEntry } from "./purge-journal.ts";
import { readLayout } from "./read-layout.ts";

export type Released = { readonly ok: true } | { readonly ok: false; readonly reason: string; readonly detail: string };

interface Disk {
  readonly device: BlockDevice;
  readonly picture: DiskPicture;
  readonly mounts: readonly DiskMount[];
}

/**
 * Records what a mounted disk has, and unmounts it for its purge. For a disk that is not mounted, `releaseDisk` takes over what an earlier task owes to
 * the disk. `earlier` is the last purge of the disk.
 */
export async function releaseDisk(
  run: WorkRun,
  taskId: LayoutEntry["task_id"],
  { device, picture, mounts }: Disk,
  earlier: PurgeEntry | null,
): Promise<Released> {
  const { root } = run;
  const serial = device.serial ?? "";
  const journal = layoutJournal(root, serial);
  const read = journal.read();
  if (!read.ok) return { ok: false, reason: "journal_unreadable", detail: read.detail };
  const owed = read.entry?.state === "restored" ? null : read.entry;
  if (mounts.length === 0) {
    // A purge of the task that wrote the entry may have overwritten blocks, and then only a new file system repairs the disk.
    const isIntact = owed?.is_intact === true && earlier?.task_id !== owed.task_id;
    if (owed !== null)
      journal.write({ ...owed, task_id: taskId, device: device.name, state: "unmounted", is_intact: isIntact });
    return { ok: true };
  }
  const attempt = attemptsBelow(root);
  const found = await readLayout(root, device, picture, mounts, attempt);
  if (!found.ok) return found;
  const parts = found.layout.parts.map((part) => withOwedFolder(part, owed));
  const users = parts.map(({ path }) => usersOf(root, path)).find((one) => one !== null);
  if (users !== undefined && users !== null) return { ok: false, reason: "in_use", detail: users };
  const entry: LayoutEntry = {
    format: "muster-layout/1",
    serial,
    task_id: taskId,
    state: "unmounting",
    device: device.name,
    is_intact: true,
    layout: { ...found.layout, parts },
  };
  journal.write(entry);
  return unmountAll(run, journal, entry, picture, attempt);
}

/** If a worker was lost before it restored a root folder, the folder's present owner and mode are those of a new file system. */
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

/** Mounts the intact file systems of a disk again, after a refusal of the purge. Returns why that failed, or null. */
export async function mountBack(
  { root, progress }: WorkRun,
  journal: LayoutJournal,
  entry: LayoutEntry,
  picture: DiskPicture,
  attempt: AttemptTool,
): Promise<string | null> {
  const faults: string[] = [];
  // The first progress ends the time within which a worker must begin, so that no mount is killed.
  progress({ step: `mount ${entry.device}`, done: 0, bytes: 0 });
  for (const part of entry.layout.parts) {
    const number = numberOf(picture, entry, part);
    const failed = number === null ? null : await mountPart(root, part, number, attempt);
    if (number === null) faults.push(`${part.path}: its device has disappeared.`);
    else if (failed !== null) faults.push(failed.detail);
  }
  if (faults.length > 0) return `Not mounted again: ${describeParts(entry.layout.parts)}. ${faults.join(" ")}`;
  journal.write({ ...entry, state: "restored" });
  return null;
}

export function numberOf(picture: DiskPicture, { serial }: LayoutEntry, { partition }: DiskPart): string | null {
  const disk = picture.devices.find((one) => one.partitionOf === null && !one.isPath && one.serial === serial);
  const parts = picture.devices.filter((one) => one.partitionOf !== null && one.partitionOf === disk?.name);
  const found = partition === null ? disk : parts.find(({ name }) => Number(/(\d+)$/.exec(name)?.[1]) === partition);
  return found?.number ?? null;
}
