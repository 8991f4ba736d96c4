import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { unmountedDisks } from "./listed-mounts.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "muster-fstab-"));
  for (const folder of ["etc", "proc/self", "mnt/real", "mnt/bare"]) mkdirSync(join(root, folder), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const unmounted = (fstab: string, ...mounts: readonly string[]): string[] => {
  writeFileSync(join(root, "etc/fstab"), `# disks\n\n${fstab}\n`);
  writeFileSync(join(root, "proc/self/mountinfo"), ["1 0 8:1 / / rw - ext4 /dev/sda1 rw", ...mounts].join("\n"));
  return unmountedDisks(root);
};

describe("the disks that fstab lists and that are not mounted", () => {
  it.each([
    "UUID=6d757374-6572 /data ext4 defaults,nofail 0 2",
    "/dev/nvme1n1 /data auto nofail",
    "LABEL=scratch /data/ xfs nofail,x-systemd.automount 0 0",
    "/srv/x /data none bind 0 0",
    "tank/data /data zfs defaults 0 0",
    "PARTLABEL=a\\040b /data btrfs subvol=@data",
  ])("are found: %s", (line) => {
    const auto = "2 1 0:30 / /data rw - autofs systemd-1 rw";
    expect(unmounted(line)).toEqual(["/data"]);
    expect(unmounted(line, auto)).toEqual(["/data"]);
    expect(unmounted(line, auto, "3 2 8:17 / /data rw - ext4 /dev/sdb1 rw")).toEqual([]);
  });

  it.each([
    "UUID=1 / ext4 defaults 0 1",
    "UUID=2 /boot/efi vfat umask=0077 0 1",
    "UUID=3 none swap sw 0 0",
    "/dev/sdb1 /data ext4 noauto,user 0 0",
    "/dev/sr0 /media/cd iso9660 ro 0 0",
    "/dev/cdrom /media/cd auto ro 0 0",
    "UUID=4 /data ext4 _netdev 0 0",
    "server:/x /data nfs nofail 0 0",
    "backend/fs /data wekafs net=udp 0 0",
    "tmpfs /data tmpfs size=1g 0 0",
    "# UUID=5 /data ext4 defaults 0 0",
  ])("need not be mounted: %s", (line) => expect(unmounted(line)).toEqual([]));

  it("may be listed by a symbolic link, and by names with other bytes", () => {
    symlinkSync("mnt/real", join(root, "data"));
    const real = "2 1 8:17 / /mnt/real rw - ext4 /dev/sdb1 rw";
    expect(unmounted("UUID=1 /data ext4 nofail", real)).toEqual([]);
    expect(unmounted("UUID=1 /data ext4 nofail")).toEqual(["/data"]);
    expect(unmounted("UUID=1 /d\\303\\244ta ext4 nofail")).toEqual(["/d\u00c3\u00a4ta"]);
    rmSync(join(root, "etc/fstab"));
    expect(unmountedDisks(root)).toEqual([]);
  });
});
