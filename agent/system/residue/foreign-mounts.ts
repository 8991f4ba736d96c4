import { join } from "node:path";
import { type Mount, parseMounts } from "../mounts.ts";
import { type Reading, readText } from "./reading.ts";

/** Matches the types of file systems whose files need neither a server nor another process. */
const LOCAL =
  /^(ext[234]|xfs|btrfs|f2fs|bcachefs|zfs|vfat|exfat|iso9660|udf|squashfs|erofs|overlay|tmpfs|ramfs|devtmpfs|devpts|proc|sysfs|cgroup2?|mqueue|hugetlbfs|debugfs|tracefs|securityfs|pstore|efivarfs|bpf|configfs|binfmt_misc|nsfs|fusectl|rootfs|selinuxfs)$/;

/** Returns the mounts of the host's own mount namespace, or none if a test's folder lacks the file `mountinfo`. */
export async function ownMounts({ root }: Reading, encoding: "utf8" | "latin1" = "utf8"): Promise<Mount[]> {
  return parseMounts((await readText(join(root, "proc/self/mountinfo"), undefined, encoding)) ?? "");
}

/**
 * Returns the mount of a path only if the mount's files need a server or another process. `foreignMountOf` only compares paths, because an access to
 * a file system whose server is lost may never return.
 */
export function foreignMountOf(mounts: readonly Mount[], path: string): Mount | null {
  let nearest: Mount | null = null;
  for (const mount of mounts) {
    const inside = mount.path === "/" || path === mount.path || path.startsWith(`${mount.path}/`);
    if (inside && (nearest === null || mount.path.length >= nearest.path.length)) nearest = mount;
  }
  return nearest === null || LOCAL.test(nearest.type) ? null : nearest;
}
