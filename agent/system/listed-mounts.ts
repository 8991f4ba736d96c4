import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { FSTAB, type MountLine, parseFstab } from "../storage/disk-layout.ts";
import { isMissing } from "./files.ts";
import { isNetworkMount, isWithin, type Mount, parseMounts } from "./mounts.ts";

/**
 * Matches the name of a disk device of the host in a line of /etc/fstab, for example a UUID or a path in /dev. A drive for discs or floppies often
 * has no medium.
 */
const DEVICE = /^([/]dev[/](?!sr\d|cdrom|dvd|fd\d)|UUID=|LABEL=|PARTUUID=|PARTLABEL=|ID=)/;
const NO_FILES = /^(swap|ignore|squashfs|iso9660|udf)$/;
/** Matches the mount points of the boot loader's disks, which only root can write to, and which an idle automount may unmount. */
const OF_BOOT = /^[/](boot|efi)([/]|$)/;

/** Whether a line of fstab mounts a file system of a disk of the host at each boot. */
function mountsDisk({ source, path, type, options }: MountLine): boolean {
  const listed = options.split(",");
  if (!path.startsWith("/") || path === "/" || OF_BOOT.test(path)) return false;
  if (listed.includes("noauto") || listed.includes("_netdev")) return false;
  if (NO_FILES.test(type) || isNetworkMount({ type })) return false;
  return (
    DEVICE.test(source) || type === "zfs" || type === "btrfs" || listed.includes("bind") || listed.includes("rbind")
  );
}

/**
 * Returns the mount points at which fstab mounts a disk and at which nothing is mounted. The argument `realPath` finds the folder to which a path of
 * fstab leads, because fstab may name a symbolic link.
 */
function unmountedIn(
  lines: readonly MountLine[],
  mounts: readonly Mount[],
  realPath: (path: string) => string,
): string[] {
  const points = new Set(mounts.filter(({ type }) => type !== "autofs").map(({ path }) => path));
  const paths = lines.filter(mountsDisk).map(({ path }) => path.replace(/(?<=.)[/]+$/, ""));
  return [...new Set(paths)].filter((path) => !points.has(path) && !points.has(realPath(path)));
}

/** Returns the mount points of disks that fstab lists and that are not mounted, with each byte of a path as one character. */
export function unmountedDisks(root: string): string[] {
  const lines = parseFstab(textIfThere(join(root, FSTAB)));
  if (!lines.some(mountsDisk)) return [];
  const mounts = parseMounts(textIfThere(join(root, "proc/self/mountinfo")));
  return unmountedIn(lines, mounts, (path) => {
    if (isNetworkMount(mounts.findLast((one) => one.path !== "/" && isWithin(path, one.path)))) return path;
    try {
      const real = realpathSync(Buffer.from(join(root, path), "latin1"), { encoding: "latin1" });
      return root === "/" ? real : real.slice(realpathSync(root).length);
    } catch (error) {
      if (isMissing(error)) return path;
      throw error;
    }
  });
}

/** Says that a disk is not mounted, and what an operator does about it. */
export const notMounted = (path: string): string =>
  `${FSTAB} mounts a disk at ${path}, and it is not mounted, so its files are unknown. Mount it by "mount ${path}", or remove its line and take a new baseline.`;

function textIfThere(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch (error) {
    if (isMissing(error)) return "";
    throw error;
  }
}
