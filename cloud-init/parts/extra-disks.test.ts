import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HostFolder, sampleInput } from "../part.fixture.ts";

// Each test starts real shells, which take long on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const PART = "40-extra-disks.sh";
let folder: HostFolder;
beforeEach(() => {
  folder = new HostFolder();
  for (const [name, script] of Object.entries(TOOLS)) folder.tool(name, script);
  folder.write("etc/fstab", "/dev/nvme0n1p1 / ext4 defaults 0 1");
  addDisk("nvme0n1", { NAME: ["nvme0n1", "nvme0n1p1"], MOUNTPOINT: ["/"], TYPE: ["disk", "part"] });
});
afterEach(() => folder.remove());

/** The test's host has one folder for each disk with lsblk's columns, and one folder for each device with blkid's answers. */
type Disk = { NAME: readonly string[]; MOUNTPOINT?: readonly string[]; TYPE: readonly string[] };
const addDisk = (name: string, disk: Disk): void => {
  folder.write(`disks/${name}/NAME`, disk.NAME.map((device) => `/dev/${device}\n`).join(""));
  folder.write(`disks/${name}/TYPE`, disk.TYPE.map((type) => `${type}\n`).join(""));
  folder.write(`disks/${name}/MOUNTPOINT`, (disk.MOUNTPOINT ?? []).map((mount) => `${mount}\n`).join(""));
  for (const device of disk.NAME) folder.write(`devices/${device}/there`, "");
};
const blank = (name: string) => addDisk(name, { NAME: [name], TYPE: ["disk"] });
const sign = (device: string, values: Record<string, string>) => {
  for (const [key, value] of Object.entries(values)) folder.write(`devices/${device}/blkid/${key}`, value);
};

const TOOLS: Record<string, string> = {
  systemctl: "",
  findmnt: "echo /dev/nvme0n1p1",
  lsblk: `
    device=\${!#}; name=\${device##*/}; disk=\${name%p1}
    case "$1 $2" in
      "-nrspo NAME") printf '/dev/%s\\n' "$name" "$disk";;
      "-nrpo NAME,TYPE") paste -d ' ' "$root/disks/$disk/NAME" "$root/disks/$disk/TYPE";;
      "-nrpo NAME") cat "$root/disks/$disk/NAME";;
      "-nro MOUNTPOINT") cat "$root/devices/$name/mount" "$root/disks/$disk/MOUNTPOINT" 2>/dev/null;;
      "-nro TYPE") cat "$root/disks/$disk/TYPE";;
      *) exit 64;;
    esac; exit 0`,
  blkid: `
    device=\${!#}; dir=$root/devices/\${device##*/}/blkid
    [ -d "$dir" ] || exit 2
    case "$3 $4" in "value -s") cat "$dir/$5" 2>/dev/null || exit 2;; export*) for f in "$dir"/*; do echo "\${f##*/}=$(cat "$f")"; done;; esac`,
  dd: `[ ! -e "$root/devices/$(basename "\${1#if=}")/broken" ]`,
  wipefs: `
    case "$*" in *--no-act*) [ ! -e "$root/devices/$(basename "\${!#}")/held" ]; exit;; esac
    rm -rf "$root/devices/$(basename "$3")/blkid"`,
  "mkfs.ext4": `
    device=\${4##*/}; mkdir -p "$root/devices/$device/blkid"
    echo "$3" >"$root/devices/$device/blkid/LABEL"; echo "uuid-of-$device" >"$root/devices/$device/blkid/UUID"`,
  mount: `echo "$6" >"$root/devices/\${5##*/}/mount"`,
};

const run = (disks: string, eraseSignatures = false, keepOnly = false) =>
  folder.run(PART, sampleInput({ extraDisks: { enabled: true, eraseSignatures, keepOnly } }), {
    MUSTER_DISKS: disks
      .split(" ")
      .map((disk) => `/dev/${disk}`)
      .join(" "),
  });
const writes = () => folder.calls().filter((call) => /^(wipefs --all --quiet|mkfs\.ext4) /.test(call));
const line = (device: string, number: number) =>
  `UUID=uuid-of-${device} /share${number} ext4 defaults,noatime,nofail,x-systemd.device-timeout=30s 0 2`;

describe("extra disks", () => {
  it("makes a share of each blank disk, mounts it, and writes it to fstab by UUID", async () => {
    blank("nvme1n1");
    blank("nvme2n1");
    expect(await run("nvme1n1 nvme2n1")).toMatchObject({
      code: 0,
      status: { message: "made: /share1=/dev/nvme1n1 /share2=/dev/nvme2n1; kept: none; in use: none" },
    });
    expect(folder.read("etc/fstab").trimEnd().split("\n").slice(1)).toEqual([line("nvme1n1", 1), line("nvme2n1", 2)]);
    expect(folder.calls()).toContain(`mount -t ext4 -o noatime /dev/nvme1n1 ${folder.path("share1")}`);
    expect(folder.read("devices/nvme2n1/blkid/LABEL")).toBe("muster-share2\n");
  });

  it("changes nothing in a second run, even when erasing is allowed", async () => {
    blank("nvme1n1");
    await run("nvme1n1", true);
    const [before, fstab] = [writes(), folder.read("etc/fstab")];
    expect(await run("nvme1n1", true)).toMatchObject({
      code: 0,
      status: { message: "made: none; kept: /share1=/dev/nvme1n1; in use: none" },
    });
    expect(writes()).toEqual(before);
    expect(folder.read("etc/fstab")).toBe(fstab);
  });

  it.each<[string, () => void, string]>([
    ["the root's disk", () => {}, "nvme0n1"],
    ["a mounted disk", () => addDisk("d", { NAME: ["d", "dp1"], TYPE: ["disk", "part"], MOUNTPOINT: ["/data"] }), "d"],
    ["swap", () => addDisk("d", { NAME: ["d", "dp1"], TYPE: ["disk", "part"], MOUNTPOINT: ["[SWAP]"] }), "d"],
    ["a member of an array", () => addDisk("d", { NAME: ["d", "md0"], TYPE: ["disk", "raid1"] }), "d"],
    ["a volume group's disk", () => addDisk("d", { NAME: ["d", "dm-0"], TYPE: ["disk", "lvm"] }), "d"],
    ["an unlocked disk", () => addDisk("d", { NAME: ["d", "dm-0"], TYPE: ["disk", "crypt"] }), "d"],
    [
      "a disk of a ZFS pool",
      () => {
        blank("d");
        sign("d", { TYPE: "zfs_member" });
        folder.write("sys/module/zfs/version", "2");
      },
      "d",
    ],
  ])("never touches %s, even when erasing is allowed", async (_, prepare, disk) => {
    prepare();
    expect(await run(disk, true)).toMatchObject({
      code: 0,
      status: { message: expect.stringContaining(`in use: /dev/${disk}`) },
    });
    expect(writes()).toEqual([]);
  });

  it("only mounts the shares of an earlier installation if it must keep the data of all other disks", async () => {
    for (const name of ["nvme1n1", "nvme2n1", "nvme3n1"]) blank(name);
    sign("nvme1n1", { TYPE: "ext4", LABEL: "muster-share1", UUID: "uuid-of-nvme1n1" });
    sign("nvme2n1", { TYPE: "xfs" });
    expect(await run("nvme1n1 nvme2n1 nvme3n1", false, true)).toMatchObject({
      code: 0,
      status: {
        message: "made: none; kept: /share1=/dev/nvme1n1; in use: none; left alone: /dev/nvme2n1 /dev/nvme3n1",
      },
    });
    expect(writes()).toEqual([]);
    expect(folder.read("etc/fstab")).toContain(line("nvme1n1", 1));
  });

  it("refuses a disk with content, names the content, and still makes the other shares", async () => {
    blank("nvme1n1");
    sign("nvme1n1", { PTTYPE: "gpt" });
    blank("nvme2n1");
    expect(await run("nvme1n1 nvme2n1")).toMatchObject({
      code: 4,
      status: {
        exit_code: 4,
        message: expect.stringMatching(/made: \/share1=\/dev\/nvme2n1;.*left alone: \/dev\/nvme1n1 \(gpt\)/),
      },
    });
    expect(writes().join()).not.toContain("nvme1n1");
  });

  it("erases a disk when the profile allows it, partitions before the disk", async () => {
    addDisk("nvme1n1", { NAME: ["nvme1n1", "nvme1n1p1"], TYPE: ["disk", "part"] });
    sign("nvme1n1", { PTTYPE: "gpt" });
    expect((await run("nvme1n1", true)).code).toBe(0);
    expect(writes().slice(0, 2)).toEqual(["wipefs --all --quiet /dev/nvme1n1p1", "wipefs --all --quiet /dev/nvme1n1"]);
  });

  it("never touches a disk that the kernel reports in use without a visible mount, and makes the other shares", async () => {
    addDisk("nvme1n1", { NAME: ["nvme1n1", "nvme1n1p1", "nvme1n1p2"], TYPE: ["disk", "part", "part"] });
    sign("nvme1n1", { PTTYPE: "gpt" });
    sign("nvme1n1p2", { TYPE: "ext4" });
    folder.write("devices/nvme1n1/held", "");
    blank("nvme2n1");
    folder.write("devices/nvme2n1/held", "");
    blank("nvme3n1");
    expect(await run("nvme1n1 nvme2n1 nvme3n1", true)).toMatchObject({
      code: 0,
      status: {
        message:
          "made: /share1=/dev/nvme3n1; kept: none; in use: /dev/nvme1n1 (held by a process) /dev/nvme2n1 (held by a process)",
      },
    });
    expect(writes().join()).not.toMatch(/nvme[12]n1/);
  });

  it("never treats an unreadable disk as blank", async () => {
    blank("nvme1n1");
    folder.write("devices/nvme1n1/broken", "");
    expect(await run("nvme1n1", true)).toMatchObject({
      code: 4,
      status: { message: expect.stringContaining("(unreadable)") },
    });
    expect(writes()).toEqual([]);
  });

  it("keeps the number of an earlier installation's share, or erases the share when the profile allows it", async () => {
    addDisk("nvme1n1", { NAME: ["nvme1n1", "nvme1n1p1"], TYPE: ["disk", "part"] });
    sign("nvme1n1", { PTTYPE: "gpt" });
    sign("nvme1n1p1", { TYPE: "ext4", LABEL: "muster-share3", UUID: "uuid-of-nvme1n1p1" });
    expect(await run("nvme1n1")).toMatchObject({
      code: 0,
      status: { message: expect.stringContaining("kept: /share3=") },
    });
    expect(writes()).toEqual([]);
    expect(folder.read("etc/fstab")).toContain(line("nvme1n1p1", 3));

    folder.write("etc/fstab", "");
    folder.write("devices/nvme1n1p1/mount", "");
    await run("nvme1n1", true);
    expect(writes()).toContain("wipefs --all --quiet /dev/nvme1n1p1");
  });

  it("never touches a disk that lsblk cannot read", async () => {
    blank("nvme1n1");
    folder.tool("lsblk", `case "$1 $2" in "-nrspo NAME") ;; *) exit 1;; esac`);
    expect((await run("nvme1n1", true)).status).not.toMatchObject({ message: expect.stringContaining("made: /") });
    expect(writes()).toEqual([]);
  });

  it("fails when a kept share cannot be mounted", async () => {
    blank("nvme1n1");
    await run("nvme1n1");
    folder.write("devices/nvme1n1/mount", "");
    folder.tool("mount", "exit 32");
    expect(await run("nvme1n1")).toMatchObject({ code: 32, status: { exit_code: 32 } });
  });

  it("never discovers disks in a folder, and writes nothing when a tool fails", async () => {
    blank("nvme1n1");
    expect(await folder.run(PART, sampleInput())).toMatchObject({
      code: 1,
      status: { message: expect.stringContaining("looking at the disks") },
    });
    folder.tool("mkfs.ext4", "exit 1");
    expect(await run("nvme1n1")).toMatchObject({ code: 1, status: { exit_code: 1 } });
    expect(folder.read("etc/fstab")).not.toContain("share");
  });
});
