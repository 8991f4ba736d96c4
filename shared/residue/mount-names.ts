/** Matches the types of file systems that nobody can write to after their creation, and the types that a process serves (FUSE). */
const NO_DISK = /^(squashfs|erofs|iso9660|cramfs|romfs|fuse.*)$/;
/**
 * Matches the mount points of file systems with the boot loader's files. An automount may unmount `/boot` or `/efi` while nobody uses the folder, and
 * the residue item `boot_files` contains their files.
 */
const OF_BOOT = /^[/](boot|efi)([/]|$)/;

/**
 * True if an entry of the residue item `mounts` names the mount of a whole file system of a disk, for example `ext4 /dev/sdb1 on /data`. A bind mount
 * is no mount of a whole file system, because its files are also below another mount. In the residue item `mounts`, the entry of a bind mount names a
 * folder of the disk, and so does the entry of each btrfs mount.
 */
export function isDiskMount(name: string): boolean {
  const [, type = "", source = "", folder, path = ""] = /^(\S+) (\S+)(?: ([(].*[)]))? on (.*)$/.exec(name) ?? [];
  if (type === "" || NO_DISK.test(type) || OF_BOOT.test(path)) return false;
  if (type === "btrfs" || type === "zfs") return true;
  return source.startsWith("/dev/") && folder === undefined;
}
