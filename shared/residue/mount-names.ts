/** Matches file systems that nobody can write to after they were made, and those that a process serves. */
const NO_DISK = /^(squashfs|erofs|iso9660|cramfs|romfs|fuse.*)$/;
/** Matches the mount points of the boot loader's disks. An idle automount may unmount them, and the item `boot_files` reads their files. */
const OF_BOOT = /^[/](boot|efi)([/]|$)/;

/**
 * Whether an entry of the residue item `mounts` is the mount of a whole file system of a disk, for example `ext4 /dev/sdb1 on /data`. Bind mounts are
 * not, because their files are also below another mount. The entry of a bind mount names a folder of the disk, as the entry of each mount of btrfs does.
 */
export function isDiskMount(name: string): boolean {
  const [, type = "", source = "", folder, path = ""] = /^(\S+) (\S+)(?: ([(].*[)]))? on (.*)$/.exec(name) ?? [];
  if (type === "" || NO_DISK.test(type) || OF_BOOT.test(path)) return false;
  if (type === "btrfs" || type === "zfs") return true;
  return source.startsWith("/dev/") && folder === undefined;
}
