import { type Findings, fault, fine, notObserved } from "./judged.ts";

/** The size and the free space of one file system on a disk of the host. */
export interface Room {
  readonly path: string;
  readonly bytes: number;
  readonly freeBytes: number;
  readonly files: number;
  readonly freeFiles: number;
}

/** A file system becomes full below the share `FULL` of free space, and stays full until the share `ROOMY` is free. */
const FULL = 0.05;
const ROOMY = 0.08;

const shareOf = (free: number, total: number): number => (total > 0 ? free / total : 1);

/**
 * `wasFull` is true if the previous check found a full file system, so that a file system near the limit does not change the condition at each check.
 */
export function judgeRoom(rooms: readonly Room[], wasFull: boolean): Findings {
  if (rooms.length === 0) return { "health.disk_room": notObserved("The host shows no file system on a disk.") };
  const least = wasFull ? ROOMY : FULL;
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const full = rooms.flatMap(({ path, bytes, freeBytes, files, freeFiles }) => {
    const [room, names] = [shareOf(freeBytes, bytes), shareOf(freeFiles, files)];
    return [
      ...(room < least ? [`${path} has ${percent(room)} of its room left`] : []),
      ...(names < least ? [`${path} has ${percent(names)} of its inodes left`] : []),
    ];
  });
  return {
    "health.disk_room": full.length > 0 ? fault("DiskFull", full) : fine(`${rooms.length} file systems have room`),
  };
}
