import { type DiskPart, repairCommands } from "../../storage/disk-layout.ts";
import type { LayoutEntry } from "./layout-journal.ts";
import type { FileSystemEnd } from "./works.ts";

/** The closed set of reasons why a file system of a disk is not at its mount point after a purge. */
export type RestoreFailure =
  | "file_system_missing"
  | "not_blank"
  | "disk_refused"
  | "table_failed"
  | "mkfs_failed"
  | "mount_failed"
  | "mount_differs"
  | "path_differs"
  | "folder_failed"
  | "worker_lost"
  | "not_mounted";

const MOST_DETAIL = 140;

const evidenceOf = (entry: LayoutEntry, part: DiskPart): FileSystemEnd["evidence"] => ({
  disk: entry.serial,
  device: entry.device,
  partition: part.partition,
  type: part.type,
  label: part.label,
  uuid: part.uuid,
  mounted_by: part.mounted_by,
  owner: `${part.uid}:${part.gid}`,
  mode: part.mode.toString(8),
});

export const restoredEnd = (entry: LayoutEntry, part: DiskPart, message: string): FileSystemEnd => ({
  target: part.path,
  outcome: "ok",
  message,
  evidence: evidenceOf(entry, part),
});

/** The message about a missing file system is for an operator, and names the disk, the file system and the commands that bring it back. */
export function failedEnd(
  entry: LayoutEntry,
  part: DiskPart,
  reason: RestoreFailure,
  detail: string,
  isMade: boolean,
): FileSystemEnd {
  const missing = isMade ? "is not mounted as before" : "has no file system";
  const repair = repairCommands(part, entry.device, isMade);
  return {
    target: part.path,
    outcome: "failed",
    message: `The disk ${entry.serial} (${entry.device}) ${missing} for ${part.path}: ${detail.slice(0, MOST_DETAIL)} Clean the storage again, or repair it: ${repair}`,
    evidence: { ...evidenceOf(entry, part), reason, repair: repair.slice(0, 256) },
  };
}
