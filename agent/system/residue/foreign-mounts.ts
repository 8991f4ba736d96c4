import { join } from "node:path";
import { type Mount, parseMounts } from "../mounts.ts";
import { type Reading, readText } from "./reading.ts";

/** Matches the types of file systems on the host's own kernel and disks, whose files can be read without a server or another process. */
const LOCAL =
  /^(ext[234]|xfs|btrfs|f2fs|bcachefs|zfs|vfat|exfat|iso9660|udf|squashfs|erofs|overlay|tmpfs|ramfs|devtmpfs|devpts|proc|sysfs|cgroup2?|mqueue|hugetlbfs|debugfs|tracefs|securityfs|pstore|efivarfs|bpf|configfs|binfmt_misc|nsfs|fusectl|rootfs|selinuxfs)$/;

/**
 * The mounts of the host's own mount namespace. A test's folder that stands for the host may lack the file `mountinfo`, and counts as a host without
 * mounts.
 */
export async function ownMounts({ root }: Reading): Promise<Mount[]> {
  return parseMounts((await readText(join(root, "proc/self/mountinfo"))) ?? "");
}

/**
 * The mount that contains a path, if files on that mount need a server or another process, otherwise null. Access to a file that needs a server or
 * another process may never return. `foreignMountOf` only compares paths and never touches the mount.
 */
export function foreignMountOf(mounts: readonly Mount[], path: string): Mount | null {
  let nearest: Mount | null = null;
  for (const mount of mounts) {
    const inside = mount.path === "/" || path === mount.path || path.startsWith(`${mount.path}/`);
    if (inside && (nearest === null || mount.path.length >= nearest.path.length)) nearest = mount;
  }
  return nearest === null || LOCAL.test(nearest.type) ? null : nearest;
}
