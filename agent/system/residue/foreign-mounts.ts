import { join } from "node:path";
import { type Reading, readText } from "./reading.ts";

/** File systems of the host's own kernel and disks, whose files can be read without a server or another process. */
const LOCAL =
  /^(ext[234]|xfs|btrfs|f2fs|bcachefs|zfs|vfat|exfat|iso9660|udf|squashfs|erofs|overlay|tmpfs|ramfs|devtmpfs|devpts|proc|sysfs|cgroup2?|mqueue|hugetlbfs|debugfs|tracefs|securityfs|pstore|efivarfs|bpf|configfs|binfmt_misc|nsfs|fusectl|rootfs|selinuxfs)$/;

export interface Mount {
  readonly id: string;
  /** The number of the device, `major:minor`. */
  readonly device: string;
  /** The path inside the file system that is mounted. */
  readonly from: string;
  readonly point: string;
  readonly type: string;
  readonly source: string;
}

/** mountinfo writes a space, a tab, a newline and a backslash of a path as an octal number. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** Parses a mountinfo file: numbers, device, root, mount point, options, optional fields, `-`, type, source, options. */
export function parseMountinfo(text: string): Mount[] {
  return text.split("\n").flatMap((line) => {
    const [front, back] = line.split(" - ");
    const [id, , device, from, point] = (front ?? "").split(" ");
    const [type, source] = (back ?? "").split(" ");
    if (id === undefined || device === undefined || from === undefined || point === undefined || type === undefined)
      return [];
    return [{ id, device, from: unescaped(from), point: unescaped(point), type, source: unescaped(source ?? "") }];
  });
}

/** The mounts of the host's own mount namespace. A folder that stands for the host may have none. */
export async function ownMounts({ root }: Reading): Promise<Mount[]> {
  return parseMountinfo((await readText(join(root, "proc/self/mountinfo"))) ?? "");
}

/**
 * The mount on which a path is, if the files of that mount need a server or another process. Access to such a file may never return. The function
 * compares paths and does not touch the mount.
 */
export function foreignMountOf(mounts: readonly Mount[], path: string): Mount | null {
  let nearest: Mount | null = null;
  for (const mount of mounts) {
    const inside = mount.point === "/" || path === mount.point || path.startsWith(`${mount.point}/`);
    if (inside && (nearest === null || mount.point.length >= nearest.point.length)) nearest = mount;
  }
  return nearest === null || LOCAL.test(nearest.type) ? null : nearest;
}
