import { describe, expect, it } from "vitest";
import {
  type DiskPart,
  isNamedBy,
  isOptionalAtBoot,
  lineFault,
  makeCommand,
  missingOptions,
  mountUnitOf,
  parseFstab,
  parseMountUnit,
  parseProbe,
  partitionName,
  partitionsIn,
  placedMount,
  repairCommands,
  sharedTag,
  typeFault,
} from "./disk-layout.ts";

const UUID = "6d757374-6572-4000-8000-000000000042";
const probe = (more = ""): ReturnType<typeof parseProbe> =>
  parseProbe(`UUID=${UUID}\nTYPE=ext4\nLABEL=scratch\n${more}`);
const part: DiskPart = {
  partition: null,
  path: "/scratch",
  type: "ext4",
  label: "scratch",
  uuid: UUID,
  mounted_by: "/etc/fstab",
  options: "defaults",
  uid: 0,
  gid: 7,
  mode: 0o1777,
};

describe("the layout of a data disk", () => {
  it("has its mount from fstab or from a mount unit", () => {
    expect(parseFstab("# UUID=x /a ext4\n\n  LABEL=b\t/mnt/b\\040c xfs nofail,ro 0 2\n/dev/sdb /d auto")).toEqual([
      { source: "LABEL=b", path: "/mnt/b c", type: "xfs", options: "nofail,ro" },
      { source: "/dev/sdb", path: "/d", type: "auto", options: "defaults" },
    ]);
    expect(parseMountUnit("[Mount]\nWhat=LABEL=old\nWhat=LABEL=b\nWhere=/b\n")).toEqual({
      source: "LABEL=b",
      path: "/b",
      type: "auto",
      options: "defaults",
    });
    expect(["/scratch", "/mnt/data-1", "/.a/b"].map(mountUnitOf)).toEqual([
      "scratch.mount",
      "mnt-data\\x2d1.mount",
      "\\x2ea-b.mount",
    ]);
  });

  it.each<[string, boolean | null]>([
    [`UUID=${UUID}`, true],
    [`UUID="${UUID.toUpperCase()}"`, true],
    ["UUID=other", false],
    ["LABEL=scratch", true],
    ["PARTUUID=ab-01", true],
    ["PARTLABEL=data", false],
    ["/dev/sda1", null],
    ["server:/export", false],
  ])("is named by %s: %s", (source, named) => {
    expect(isNamedBy(source, probe("PART_ENTRY_UUID=ab-01"))).toBe(named);
  });

  it.each<[string, string, ReturnType<typeof sharedTag>]>([
    [`UUID=${UUID}`, "", null],
    [`UUID=${UUID}`, "LABEL=scratch", null],
    ["/dev/sda", `UUID=${UUID.toUpperCase()}`, "UUID"],
    ["LABEL=scratch", "LABEL=scratch", "LABEL"],
    ['LABEL="scratch"', "LABEL=scratch", "LABEL"],
    ["LABEL=scratch", "LABEL=other", null],
    ["/dev/disk/by-label/scra\\x74ch", "LABEL=scratch", "LABEL"],
    ["/dev/disk/by-partuuid/ab-01", "PART_ENTRY_UUID=AB-01", "PARTUUID"],
    ["PARTLABEL=data", "PART_ENTRY_NAME=data", "PARTLABEL"],
    ["/dev/mapper/label", "LABEL=label", null],
  ])("named by %s is mixed up with a device with %s: %s", (source, other, tag) => {
    expect(sharedTag(source, UUID, parseProbe(other))).toBe(tag);
  });

  it.each<[Parameters<typeof lineFault>, RegExp | null]>([
    [[{ source: "LABEL=scratch", path: "/s", type: "ext4", options: "" }, "fstab", probe(), false], null],
    [[{ source: "/dev/sda", path: "/s", type: "auto", options: "" }, "fstab", probe(), true], null],
    [[{ source: "/dev/sda", path: "/s", type: "auto", options: "" }, "fstab", probe(), false], /another device/],
    [[{ source: "LABEL=scratch", path: "/s", type: "xfs", options: "" }, "fstab", probe(), false], /type xfs/],
  ])("has a line that mounts it again (%#)", (args, fault) => {
    if (fault === null) expect(lineFault(...args)).toBeNull();
    else expect(lineFault(...args)).toMatch(fault);
  });

  it.each<[string, RegExp | null]>([
    ["", null],
    ["TYPE=xfs", null],
    ["TYPE=btrfs", /btrfs/],
    ["UUID=1234-ABCD", /no UUID/],
    ["LABEL=a b", /unusual/],
    ["LABEL=$(reboot)", /unusual/],
  ])("can be made again if blkid tells %s", (more, fault) => {
    if (fault === null) expect(typeFault(probe(more))).toBeNull();
    else expect(typeFault(probe(more))).toMatch(fault);
  });

  it("has partitions of GPT or DOS", () => {
    const dump = "label: gpt\nlabel-id: X\n\n/dev/nvme0n1p1 : start=1\n/dev/nvme0n1p12 : start=2\n";
    expect([partitionsIn(dump), partitionsIn("label: dos\n/dev/sda3 : x"), partitionsIn("label: sun\n")]).toEqual([
      [1, 12],
      [3],
      null,
    ]);
    expect(partitionsIn("label: gpt\n/proc/12/fd/3p1 : x\n/proc/12/fd/3p2 : x\n")).toEqual([1, 2]);
    expect([partitionName("nvme0n1", 2), partitionName("sda", 2), partitionName("sda", null)]).toEqual([
      "nvme0n1p2",
      "sda2",
      "sda",
    ]);
  });

  it("is made and mounted by commands that keep its type, label and UUID", () => {
    expect(makeCommand(part, "/dev/sda")).toEqual({
      tool: "mkfs.ext4",
      args: ["-q", "-L", "scratch", "-U", UUID, "/dev/sda"],
    });
    expect(makeCommand({ ...part, type: "xfs", label: null }, "/dev/sda1")).toEqual({
      tool: "mkfs.xfs",
      args: ["-q", "-f", "-m", `uuid=${UUID}`, "/dev/sda1"],
    });
    expect(repairCommands({ ...part, mounted_by: "scratch.mount", partition: 1 }, "sda", false)).toBe(
      `mkfs.ext4 -q -L scratch -U ${UUID} /dev/sda1 && systemctl start scratch.mount && chown 0:7 /scratch && chmod 1777 /scratch`,
    );
    expect(
      placedMount({ ...part, options: "nofail,noatime,x-systemd.after=a" }, "/dev/sda", "/proc/9/fd/3").args,
    ).toEqual(["--no-canonicalize", "-t", "ext4", "-o", "noatime", "--", "/dev/sda", "/proc/9/fd/3"]);
    expect(placedMount({ ...part, mounted_by: "scratch.mount" }, "/dev/sda", "/proc/9/fd/3")).toEqual({
      tool: "systemctl",
      args: ["start", "scratch.mount"],
    });
    expect(repairCommands(part, "sda", true)).toMatch(/^mount [/]scratch && chown/);
  });

  it("has a mount with the options of its line that Linux shows, and may be missing at a boot", () => {
    expect(missingOptions("defaults,nofail,noatime,nosuid", ["rw", "noatime"])).toEqual(["nosuid"]);
    expect(["nofail", "defaults,noauto", "defaults"].map((options) => isOptionalAtBoot({ options }))).toEqual([
      true,
      true,
      false,
    ]);
  });
});
