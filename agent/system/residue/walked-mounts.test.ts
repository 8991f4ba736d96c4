import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { compareResidue } from "../../../shared/residue/compare.ts";
import { RESIDUE_ITEM_NAMES, type ResidueItem } from "../../../shared/residue/items.ts";
import type { ResidueReading, ResidueSnapshot } from "../../../shared/residue/snapshot.ts";
import { inMountNamespace, mayMount, mayMountLoop } from "../../../test/support/mount-namespace.ts";
import { parseMounts } from "../mounts.ts";
import { checkStillMounted, planWalk, throwIfDisk } from "./walked-mounts.ts";

const TENANT = { login_user: "ann", uid: 30_001 };
const PROGRAM = join(import.meta.dirname, "main.ts");
const ROOT = "1 0 8:1 / / rw - ext4 /dev/sda1 rw";
const PLACES = ["data", "mnt/x", "share7", "run/lock", "srv/memory", "opt/lower", "opt/upper", "opt/work", "opt/over"];

const plan = (...lines: readonly string[]) => planWalk(parseMounts([ROOT, ...lines].join("\n")));
const folders = (...lines: readonly string[]): string[] => plan(...lines).starts.map(({ folder }) => folder || "/");

describe("the mounts whose files are searched", () => {
  it.each([
    ["a disk at any folder", "2 1 8:17 / /data rw - ext4 /dev/sdb1 rw", true],
    ["a disk in a folder of the system", "2 1 8:17 / /home rw - xfs /dev/sdb1 rw", true],
    ["a file system that the agent does not know, on a disk", "2 1 8:17 / /data rw - newfs /dev/sdb1 rw", true],
    ["btrfs, which has no device number", "2 1 0:40 /@x /data rw - btrfs /dev/sdb rw", true],
    ["files in memory", "2 1 0:40 / /run/lock rw - tmpfs tmpfs rw", true],
    ["an overlay", "2 1 0:40 / /over rw - overlay overlay rw,lowerdir=/a", true],
    ["a disk that an error made read-only", "2 1 8:17 / /data rw - ext4 /dev/sdb1 ro,errors=remount-ro", true],
    ["a bind mount that is read-only", "2 1 8:17 /x /data ro - ext4 /dev/sdb1 rw", true],
    ["memory that is mounted read-only", "2 1 0:40 / /data ro - tmpfs tmpfs ro", true],
    ["a disk that is mounted read-only", "2 1 8:17 / /data ro - ext4 /dev/sdb1 ro", false],
    ["an image that nobody can write to", "2 1 7:1 / /snap/core rw - squashfs /dev/loop1 ro", false],
    ["files of a server", "2 1 0:40 / /mnt/nfs rw - nfs4 server:/x rw", false],
    ["Weka", "2 1 0:40 / /mnt/weka rw - wekafs fs rw", false],
    ["files of a process", "2 1 0:40 / /mnt/cloud rw - fuse.s3fs s3fs rw", false],
    ["a place where nothing is mounted yet", "2 1 0:40 / /net rw - autofs systemd-1 rw", false],
    ["files of the kernel", "2 1 0:40 / /sys/fs/bpf rw - bpf bpf rw", false],
    ["memory below /sys", "2 1 0:40 / /sys/fs/cgroup rw - tmpfs tmpfs rw", false],
    ["files of a container", "2 1 0:40 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw", false],
  ])("%s", (_what, line, isSearched) => {
    const path = line.split(" ")[4] ?? "";
    expect(folders(line)).toEqual(isSearched ? ["/", path] : ["/"]);
    expect(plan(line).points).toContain(path);
  });

  it.each([
    ["a disk that a process serves", ["2 1 8:17 / /data rw - fuseblk /dev/sdb1 rw"], "by a driver of the kernel"],
    ["also by another name", ["2 1 0:40 / /data rw - fuse.ntfs /dev/sdb1 rw"], "/data (fuse.ntfs /dev/sdb1)"],
    ["an unknown file system", ["2 1 0:40 / /data rw - newfs server rw"], "is of a type that the agent does not know"],
    [
      "a disk below another mount",
      ["2 1 8:17 / /data rw - ext4 /dev/sdb1 rw", "3 2 0:40 / /data rw - tmpfs tmpfs rw"],
      "/data (ext4 /dev/sdb1) lies below another mount",
    ],
    [
      "a disk below a mount on a folder above it",
      ["2 1 8:17 / /a/b rw - ext4 /dev/sdb1 rw", "3 1 8:33 / /a rw - ext4 /dev/sdc1 rw"],
      "/a/b (ext4 /dev/sdb1) lies below another mount",
    ],
  ])("are not known on a host with %s", (_what, lines, message) => {
    expect(() => plan(...lines)).toThrow(message);
  });

  it("are read once if one mount shows the files of another, and twice if it hides some of them", () => {
    const disk = "2 1 8:17 / /data rw - ext4 /dev/sdb1 rw";
    const bind = "3 1 8:17 /x /srv/x rw - ext4 /dev/sdb1 rw";
    const again = "4 1 8:17 / /again rw - ext4 /dev/sdb1 rw";
    expect(folders(disk, bind)).toEqual(["/", "/data"]);
    expect(folders(bind, disk)).toEqual(["/", "/data"]);
    expect(folders(disk, again)).toEqual(["/", "/data"]);
    expect(folders(bind)).toEqual(["/", "/srv/x"]);
    const inner = "5 2 0:40 / /data/x rw - tmpfs tmpfs rw";
    expect(folders(disk, inner, bind)).toEqual(["/", "/data", "/data/x", "/srv/x"]);
    // The walk knows the files of a disk below another mount if the disk is also mounted elsewhere.
    expect(folders(disk, "6 2 0:41 / /data rw - tmpfs tmpfs rw", again)).toEqual(["/", "/data", "/again"]);
    // The walk over the disks leaves out folders of container engines, so a mount with such a folder does not show all its files.
    const all = "7 1 8:17 / /var rw - ext4 /dev/sdb1 rw";
    expect(folders(all, "8 1 8:17 /lib/docker/x /srv/x rw - ext4 /dev/sdb1 rw")).toEqual(["/", "/var", "/srv/x"]);
  });

  it("must be mounted from the begin to the end of the search, except memory, whose files end with the mount", () => {
    const [disk, memory] = ["2 1 8:17 / /data rw - ext4 /dev/sdb1 rw", "3 1 0:40 / /run/x rw - tmpfs tmpfs rw"];
    const mounts = (...lines: readonly string[]) => parseMounts([ROOT, ...lines].join("\n"));
    expect(() => checkStillMounted(plan(disk, memory), mounts(disk))).not.toThrow();
    expect(() => checkStillMounted(plan(disk, memory), mounts(memory))).toThrow("/data (ext4 /dev/sdb1) was unmounted");
    expect(() => checkStillMounted(plan(disk), mounts(disk.replace("2", "9")))).toThrow("was unmounted");
    expect(() => throwIfDisk("/run/x", mounts(memory))).not.toThrow();
    expect(() => throwIfDisk("/data", mounts(memory, disk))).toThrow("A disk was mounted at /data during the search");
    expect(() => throwIfDisk("/gone", mounts(memory, disk))).toThrow("A disk was mounted at /gone during the search");
  });
});

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "muster-mounts-"));
  for (const folder of ["etc", "proc/self", ...PLACES]) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0::/root:/bin/sh\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\n");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/**
 * Runs a script in a mount namespace, where `$0` stands for the host's root folder, and reads residue items of that host. The list of mounts of the
 * test's host contains the mounts below `$0`.
 */
function read(script: string, items: readonly ResidueItem[]): ResidueSnapshot {
  const order = JSON.stringify({ root, tenant: TENANT, items, pauseMs: 0 });
  const printed = inMountNamespace(
    `cd "$0"; { ${script}; } >&2
    sed -n "s|^\\([^ ]* [^ ]* [^ ]* [^ ]*\\) $0/|\\1 /|p" /proc/self/mountinfo > proc/self/mountinfo
    exec "${process.execPath}" "${PROGRAM}" "$1"`,
    root,
    order,
  );
  const lines = printed.trim().split("\n");
  const readings = lines.map((line) => JSON.parse(line) as { item: ResidueItem; reading: ResidueReading });
  return Object.fromEntries(readings.map(({ item, reading }) => [item, reading]));
}
const clean = (snapshot: ResidueSnapshot): ResidueSnapshot =>
  Object.fromEntries(
    RESIDUE_ITEM_NAMES.map((item) => [item, snapshot[item] === undefined ? undefined : { entries: [] }]),
  );
function findings(snapshot: ResidueSnapshot, item: ResidueItem, before = clean(snapshot)): string[] {
  const judged = compareResidue(before, snapshot, TENANT).items[item];
  if (judged.state === "unreadable") return [judged.reason];
  return judged.state === "found" ? judged.found.map(({ name }) => name).sort() : [];
}

describe("files on mounts (SKIPPED where mounting is forbidden)", () => {
  it.skipIf(!mayMount)("are found on every file system in memory and on every overlay, whatever their folders", () => {
    const planted = read(
      `for folder in data run/lock srv/memory; do mount -t tmpfs none $folder; done
      mount -t overlay overlay -o lowerdir=opt/lower,upperdir=srv/memory,workdir=opt/work opt/over || :
      for folder in data run/lock srv/memory; do
        mkdir $folder/left; touch $folder/left/file $folder/gone $folder/ours; chown -R 30001 $folder/left; chown 4242 $folder/gone
      done; cp /bin/true data/root; chmod 4755 data/root`,
      ["ownerless_files", "tenant_files", "setuid_files"],
    );
    expect(findings(planted, "tenant_files")).toEqual(
      ["/data", "/run/lock", "/srv/memory"].map((folder) => `${folder}/left of user 30001, group 0`),
    );
    expect(findings(planted, "ownerless_files")).toEqual(
      ["/data", "/run/lock", "/srv/memory"].map((folder) => `${folder}/gone of user 4242, group 0`),
    );
    expect(findings(planted, "setuid_files")).toEqual(["/data/root"]);
  });

  it.skipIf(!mayMountLoop)("are found on data disks that no profile lists, and on a disk below another disk", () => {
    const planted = read(
      `for disk in data share7; do truncate -s 16M $disk.image; mkfs.ext4 -q $disk.image; mount -o loop $disk.image $disk; done
      mkdir data/inner; truncate -s 16M x.image; mkfs.ext4 -q x.image; mount -o loop x.image data/inner
      touch data/tenant share7/tenant data/inner/tenant; chown 30001 data/tenant share7/tenant data/inner/tenant
      chown 30001 share7`,
      ["ownerless_files", "tenant_files"],
    );
    expect(findings(planted, "tenant_files")).toEqual(
      ["/data/inner/tenant", "/data/tenant", "/share7"].map((path) => `${path} of user 30001, group 0`),
    );
    expect(findings(planted, "ownerless_files")).toEqual([]);
  });

  it.skipIf(!mayMount)("are found beside a mount that never answers, at which the search does not look", () => {
    const planted = read(
      `mount -t tmpfs none data; mkdir data/hang; touch data/tenant; chown 30001 data/tenant; exec 3<>/dev/fuse
      mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none data/hang`,
      ["ownerless_files", "tenant_files"],
    );
    expect(findings(planted, "tenant_files")).toEqual(["/data/tenant of user 30001, group 0"]);
  });

  it.skipIf(!mayMountLoop)(
    "are not searched on a disk that is mounted read-only, whose mount the baseline must have",
    () => {
      const disk = `truncate -s 16M image; mkfs.ext4 -q image; mount -o loop image data; touch data/tenant; chown 30001 data/tenant`;
      const items = ["ownerless_files", "tenant_files", "mounts"] as const;
      const writable = read(disk, items);
      const readOnly = read(`${disk}; umount data; mount -o loop,ro image data`, items);
      expect(findings(readOnly, "tenant_files")).toEqual([]);
      expect(findings(readOnly, "mounts", writable)).toEqual([expect.stringMatching(/^ext4 .* on \/data$/)]);
      expect(findings(readOnly, "mounts", readOnly)).toEqual([]);
    },
  );

  it.skipIf(!mayMountLoop)("are not known while a disk of fstab is not mounted, and its mount is missed", () => {
    const disk = `echo "LABEL=x /data ext4 nofail" > etc/fstab; truncate -s 16M image; mkfs.ext4 -q image; mount -o loop image data`;
    const items = ["ownerless_files", "tenant_files", "mounts"] as const;
    const baseline = read(`${disk}; touch data/tenant; chown 30001 data/tenant`, items);
    expect(findings(baseline, "tenant_files")).toEqual(["/data/tenant of user 30001, group 0"]);
    const failed = read(`${disk}; umount data`, items);
    expect(findings(failed, "tenant_files")).toEqual([
      expect.stringContaining("mounts a disk at /data, and it is not"),
    ]);
    expect(findings(failed, "ownerless_files")).toEqual([expect.stringContaining('Mount it by "mount /data"')]);
    expect(findings(failed, "mounts", baseline)).toEqual([expect.stringMatching(/^ext4 .* on [/]data$/)]);
  });
});
