import { describe, expect, it } from "vitest";
import { type BlockDevice, type DiskMount, type DiskPicture, judgeDisk } from "./disk-rules.ts";
import { unreadReason } from "./disk-sample.ts";

const disk = (name: string, more: Partial<BlockDevice> = {}): BlockDevice => ({
  name,
  number: `259:${name.length}`,
  partitionOf: null,
  serial: `S-${name}`,
  wwn: `eui.${name}`,
  model: "SAMSUNG MZQL23T8",
  firmware: "GDC5902Q",
  bytes: 3_840_755_982_336,
  bus: "nvme",
  readOnly: false,
  removable: false,
  isVirtual: false,
  holders: [],
  characters: [],
  subsystem: null,
  namespaceId: "1",
  isPath: false,
  ...more,
});
const picture = (devices: BlockDevice[], more: Partial<DiskPicture> = {}): DiskPicture => ({
  devices,
  controllers: [],
  unclearUsers: [],
  mounted: new Set(),
  mounts: [],
  swap: new Set(),
  hasZfs: false,
  ...more,
});
const judge = (
  devices: BlockDevice[],
  more: Partial<DiskPicture> = {},
  wwn: string | null = "eui.a",
  mayUnmount: string[] = [],
): string => {
  const verdict = judgeDisk(picture(devices, more), { serial: "S-a", wwn }, mayUnmount);
  return verdict.mayErase ? `erase ${verdict.device.name}` : verdict.reason;
};
const mounts = (name: string, ...all: Partial<DiskMount>[]): Partial<DiskPicture> => ({
  mounted: new Set([name]),
  mounts: all.map((one) => ({ name, path: "/scratch", from: "/", isByNumber: true, ...one })),
});
const at = (name: string, ...paths: string[]) => mounts(name, ...paths.map((path) => ({ path })));
const part = (name: string, of: string, holders: string[] = []) =>
  disk(name, { partitionOf: of, serial: null, holders });
const volume = (name: string, holders: string[] = []) => disk(name, { serial: null, isVirtual: true, holders });

describe("whether a disk may be erased", () => {
  it("only a free disk with the serial number and the WWN of the order", () => {
    expect(judge([disk("a"), disk("b")])).toBe("erase a");
    expect(judge([disk("a"), part("a1", "a")])).toBe("erase a");
    expect(judge([disk("a")], {}, null)).toBe("erase a");
    const path = disk("path", { subsystem: "nqn", isPath: true, serial: "S-a" });
    expect(judge([disk("a", { subsystem: "nqn" }), path])).toBe("erase a");
    expect(judge([disk("a"), disk("b")], { mounted: new Set(["b"]), swap: new Set(["b"]) })).toBe("erase a");
  });

  it.each<[string, string, BlockDevice[], Partial<DiskPicture>?]>([
    ["not_found", "no disk has the serial number", [disk("b")]],
    ["not_found", "only a partition has the serial number", [disk("p", { partitionOf: "b", serial: "S-a" })]],
    ["ambiguous", "two namespaces or paths have it", [disk("a"), disk("b", { serial: "S-a" })]],
    [
      "ambiguous",
      "a controller of another disk has it",
      [disk("a", { subsystem: "nqn" })],
      { controllers: [{ name: "nvme1", subsystem: "nqn.other", serial: "S-a", transport: "pcie", id: 1 }] },
    ],
    ["other_wwn", "the WWN differs", [disk("a", { wwn: "eui.x" })]],
    ["other_wwn", "the WWN is unknown", [disk("a", { wwn: null })]],
    ["not_a_disk", "a device without hardware", [disk("a", { isVirtual: true })]],
    ["read_only", "a write-protected disk", [disk("a", { readOnly: true })]],
    ["removable", "virtual media", [disk("a", { removable: true })]],
    ["raid_volume", "a volume of a boot controller", [disk("a", { model: "DELLBOSS VD boss" })]],
    ["raid_volume", "a volume of a RAID controller", [disk("a", { model: "PERC H755" })]],
    ["mounted", "the disk is mounted", [disk("a")], { mounted: new Set(["a"]) }],
    ["mounted", "a partition is mounted", [disk("a"), part("a1", "a")], { mounted: new Set(["a1"]) }],
    [
      "mounted",
      "a volume on a partition is mounted",
      [disk("a"), part("a1", "a", ["dm-0"]), volume("dm-0")],
      { mounted: new Set(["dm-0"]) },
    ],
    [
      "mounted",
      "a volume on encryption on RAID is mounted",
      [disk("a", { holders: ["md0"] }), volume("md0", ["dm-0"]), volume("dm-0", ["dm-1"]), volume("dm-1")],
      { mounted: new Set(["dm-1"]) },
    ],
    ["swap", "a partition is swap space", [disk("a"), part("a2", "a")], { swap: new Set(["a2"]) }],
    ["in_use", "a volume uses it, though nothing is mounted", [disk("a", { holders: ["bcache0"] }), volume("bcache0")]],
    ["in_use", "the volume itself is not listed", [disk("a", { holders: ["dm-9"] })]],
    ["in_use", "a loop device on a partition", [disk("a"), part("a1", "a", ["loop0"]), volume("loop0")]],
    ["in_use", "an export whose disk nobody knows", [disk("a")], { unclearUsers: ["the NVMe-oF export x (/dev/y)"] }],
    [
      "mounted",
      "another namespace of the NVMe subsystem is mounted",
      [disk("a", { subsystem: "nqn" }), disk("b", { subsystem: "nqn" })],
      { mounted: new Set(["b"]) },
    ],
    ["not_local", "a disk at a USB port", [disk("a", { bus: "usb" })]],
    ["not_local", "a disk of another host", [disk("a", { bus: "network" })]],
    [
      "other_namespace",
      "a free namespace of the same NVMe subsystem is not named",
      [disk("a", { subsystem: "nqn" }), disk("b", { subsystem: "nqn" })],
    ],
    ["not_found", "only a hidden path has the serial number", [disk("a", { isPath: true })]],
    ["zfs", "a ZFS pool is in use", [disk("a")], { hasZfs: true }],
  ])("%s: %s", (reason, _what, devices, more) => {
    expect(judge(devices, more)).toBe(reason);
  });

  it.each<[string, string, BlockDevice[], Partial<DiskPicture>]>([
    ["erase a", "the disk is mounted at a scratch folder", [disk("a")], at("a", "/scratch")],
    ["erase a", "its partition is", [disk("a"), part("a1", "a")], at("a1", "/scratch")],
    ["mounted", "it is mounted elsewhere", [disk("a")], at("a", "/data")],
    ["mounted", "it is also mounted elsewhere", [disk("a")], at("a", "/scratch", "/data")],
    ["mounted", "it is mounted at two scratch folders", [disk("a")], at("a", "/scratch", "/share1")],
    ["mounted", "only a folder of it is mounted", [disk("a")], mounts("a", { from: "/home" })],
    ["mounted", "Linux names only its path", [disk("a")], mounts("a", { isByNumber: false })],
    ["mounted", "Linux names no mount of it", [disk("a")], { mounted: new Set(["a"]) }],
    [
      "mounted",
      "a RAID volume of it is mounted",
      [disk("a", { holders: ["md0"] }), volume("md0")],
      at("md0", "/scratch"),
    ],
    [
      "in_use",
      "a partition is a volume",
      [disk("a"), part("a1", "a"), part("a2", "a", ["dm-0"])],
      at("a1", "/scratch"),
    ],
    [
      "mounted",
      "another namespace of the disk is mounted there",
      [disk("a", { subsystem: "nqn" }), disk("b", { subsystem: "nqn" })],
      at("b", "/scratch"),
    ],
  ])("%s with mount points that the agent may unmount: %s", (verdict, _what, devices, more) => {
    expect(judge(devices, more, "eui.a", ["/scratch", "/share1"])).toBe(verdict);
  });

  it("says plainly that it takes no RAID or LVM apart", () => {
    const mounted = judgeDisk(picture([disk("a", { holders: ["md0"] }), volume("md0")], at("md0", "/scratch")), {
      serial: "S-a",
      wwn: null,
    });
    expect(mounted).toMatchObject({ detail: expect.stringContaining("no disk below RAID, LVM, encryption") });
    const idle = judgeDisk(picture([disk("a", { holders: ["dm-0"] })]), { serial: "S-a", wwn: null });
    expect(idle).toMatchObject({ detail: expect.stringContaining("Take the volume apart first") });
  });
});

describe("whether a disk's blocks are read for a comparison", () => {
  const serial = { serial: "S-a" };
  const controller = { name: "nvme9", subsystem: "other", transport: "pcie", id: 1, ...serial };
  it.each<[string, BlockDevice[], Partial<DiskPicture>, string | null]>([
    ["a disk of the host", [disk("a", { readOnly: true, model: "PERC H755" })], at("a", "/"), null],
    ["no serial number", [disk("a", { serial: null })], {}, "no serial number"],
    ["two devices with the serial number", [disk("a"), disk("b", serial)], {}, "Several"],
    [
      "a controller of another disk with it",
      [disk("a", { subsystem: "nqn" })],
      { controllers: [controller] },
      "Several",
    ],
    ["a removable disk", [disk("a", { removable: true })], {}, "not stay"],
    ["a USB disk", [disk("a", { bus: "usb" })], {}, "not stay"],
    ["a disk of another host", [disk("a", { bus: "network" })], {}, "not stay"],
  ])("%s", (_what, devices, more, reason) => {
    const [device = disk("a")] = devices;
    expect(unreadReason(picture(devices, more), device, false)).toEqual(
      reason === null ? null : expect.stringContaining(reason),
    );
    if (reason === null) expect(unreadReason(picture(devices, more), device, true)).toContain("running system");
  });
});
