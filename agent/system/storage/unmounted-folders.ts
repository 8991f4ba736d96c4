import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DiskPicture } from "../../storage/disk-rules.ts";
import { notMounted, unmountedDisks } from "../listed-mounts.ts";
import { isWithin, parseMounts } from "../mounts.ts";
import { unrestoredDisks } from "./layout-journal.ts";
import { unmountedByOthers } from "./restore-disk.ts";
import { type FileSystemEnd, NOT_MOUNTED, type StepEnd } from "./works.ts";

/** Returns why the data of an empty folder may still be on an unmounted disk, or null if nothing is unmounted there. */
export type FolderFault = (path: string) => Pick<StepEnd, "message" | "evidence"> | null;

/**
 * A disk that fstab lists may not be mounted, and an earlier task may have unmounted disks without mounting them again. At the mount point of an
 * unmounted disk is only a bare folder, which says nothing about the data on the disk. `unmountedFolders` reads fstab, the mounts and the journals of
 * the disks before the task changes them.
 */
export function unmountedFolders(root: string, taskId: string, picture: () => DiskPicture): FolderFault {
  const { entries, unreadable } = unrestoredDisks(root);
  const others = entries.filter(({ task_id }) => task_id !== taskId);
  const [file] = unreadable;
  const own = entries.filter(({ task_id }) => task_id === taskId).flatMap(({ layout }) => layout.parts);
  const listed = unmountedDisks(root).filter((point) => !own.some(({ path }) => path === point));
  const ofFstab: FolderFault = (path) => {
    const point = listed.find((one) => isWithin(path, one) || isWithin(one, path));
    return point === undefined ? null : { message: notMounted(point), evidence: { reason: NOT_MOUNTED } };
  };
  if (others.length === 0 && file === undefined) return ofFstab;
  const found = picture();
  const unmounted = others.flatMap((entry) => unmountedByOthers(root, entry, found));
  const mountPoints = new Set(
    parseMounts(readFileSync(join(root, "proc/self/mountinfo"), "latin1")).map((one) => one.path),
  );
  return (path) => {
    const end = unmounted.find(({ target }) => isWithin(path, target) || isWithin(target, path));
    if (end !== undefined) return faultOf(end);
    if (file === undefined || mountPoints.has(path)) return ofFstab(path);
    const message = `${file} cannot be read, so a disk of ${path} may be unmounted. Mount the data disks by hand, then remove the file.`;
    return { message, evidence: { reason: "journal_unreadable" } };
  };
}

function faultOf({ message, evidence }: FileSystemEnd): Pick<StepEnd, "message" | "evidence"> {
  const { disk = null, device = null, repair = null } = evidence;
  return { message, evidence: { reason: NOT_MOUNTED, disk, disk_device: device, repair } };
}
