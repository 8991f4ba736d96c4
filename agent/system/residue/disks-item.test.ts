import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { compareResidue } from "../../../shared/residue/compare.ts";
import { disksOf } from "../../../shared/residue/disk-names.ts";
import type { ResidueSnapshot } from "../../../shared/residue/snapshot.ts";
import { HostFolder } from "../../../test/fakes/hub/host-folder.ts";
import { readItems } from "./read-item.ts";

let host: HostFolder;
const PCI = "sys/bus/pci/devices";
const NVME = "0000:01:00.0";
const SATA = "0000:02:00.0";

function pci(address: string, kind: string): void {
  for (const [file, text] of Object.entries({ class: kind, vendor: "0x144d", device: "0xa80a" }))
    host.write(`sys/devices/pci0/${address}/${file}`, `${text}\n`);
  mkdirSync(host.path(`sys/devices/pci0/${address}/driver`));
  mkdirSync(host.path(PCI), { recursive: true });
  symlinkSync(host.path(`sys/devices/pci0/${address}`), host.path(`${PCI}/${address}`));
}
function disk(path: string, files: Record<string, string>): void {
  for (const [file, text] of Object.entries({ dev: "8:0", ro: "0", removable: "0", size: "8192", ...files }))
    host.write(`sys/devices/${path}/${file}`, `${text}\n`);
  mkdirSync(host.path("sys/class/block"), { recursive: true });
  symlinkSync(host.path(`sys/devices/${path}`), host.path(`sys/class/block/${path.split("/").at(-1)}`));
}

/** The test's host has an NVMe disk, a SATA disk, a loop device, an optical drive, and a SATA controller with empty ports. */
beforeEach(() => {
  host = new HostFolder();
  for (const [address, kind] of [
    [NVME, "0x010802"],
    [SATA, "0x010601"],
    ["0000:03:00.0", "0x010601"],
    ["0000:04:00.0", "0x030200"],
  ] as const)
    pci(address, kind);
  const controller = `sys/devices/pci0/${NVME}/nvme/nvme0`;
  for (const [file, text] of Object.entries({ serial: "S-nvme", subsysnqn: "nqn.x", transport: "pcie" }))
    host.write(`${controller}/${file}`, `${text}\n`);
  mkdirSync(host.path("sys/class/nvme"), { recursive: true });
  symlinkSync(host.path(controller), host.path("sys/class/nvme/nvme0"));
  disk("virtual/nvme-subsystem/nvme-subsys0/nvme0n1", { nsid: "1", wwid: "eui.1" });
  symlinkSync(host.path(controller), host.path("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/device"));
  disk(`pci0/${SATA}/ata1/block/sda`, {
    "device/vendor": "ATA",
    "device/model": "SLOW SSD",
    "device/wwid": "naa.1",
    "device/serial": "S-sata",
  });
  disk("virtual/block/loop0", {});
  disk("pci0/usb1/sr0", { removable: "1" });
});
afterEach(() => host.remove());

async function snapshot(): Promise<ResidueSnapshot> {
  const all: ResidueSnapshot = {};
  for await (const { item, reading } of readItems({ root: host.root, tenant: null, items: ["disks"], pauseMs: 1 }))
    all[item] = reading;
  return all;
}
async function foundSince(baseline: ResidueSnapshot | null): Promise<string[]> {
  const judged = compareResidue(baseline, await snapshot(), null).items.disks;
  if (judged.state === "found") return judged.found.map(({ name, kind }) => `${kind} ${name}`).sort();
  return [judged.state];
}
const remove = (path: string): void => rmSync(host.path(path), { recursive: true });

describe("the disks of a host", () => {
  it("are those with hardware, and a controller with empty ports is no finding", async () => {
    const baseline = await snapshot();
    expect(disksOf(baseline)).toEqual(["S-nvme", "S-sata"]);
    expect(await foundSince(baseline)).toEqual(["clean"]);
    expect(await foundSince(null)).toEqual(["unreadable"]);
    expect(await foundSince({})).toEqual(["unreadable"]);
  });

  it.each<readonly [string, () => void, readonly string[]]>([
    [
      "a detached namespace",
      () => remove("sys/class/block/nvme0n1"),
      [
        "added NVMe controller S-nvme without a disk",
        `added storage controller ${NVME} without a disk`,
        "removed disk S-nvme",
      ],
    ],
    [
      "an unbound driver",
      () => {
        for (const path of ["sys/class/block/nvme0n1", "sys/class/nvme/nvme0", `${PCI}/${NVME}/driver`]) remove(path);
      },
      [`added storage controller ${NVME} without a driver`, "removed disk S-nvme"],
    ],
    [
      "a removed PCI device",
      () => {
        for (const path of ["sys/class/block/nvme0n1", "sys/class/nvme/nvme0", `${PCI}/${NVME}`]) remove(path);
      },
      ["removed disk S-nvme"],
    ],
    [
      "a deleted SCSI device",
      () => remove("sys/class/block/sda"),
      [`added storage controller ${SATA} without a disk`, "removed disk S-sata"],
    ],
    [
      "a removed controller that had no disk",
      () => remove(`${PCI}/0000:03:00.0`),
      ["removed storage controller 0000:03:00.0 without a disk"],
    ],
    [
      "another size, as after a format of less capacity",
      () => host.write(`sys/devices/pci0/${SATA}/ata1/block/sda/size`, "4096\n"),
      ["changed disk S-sata"],
    ],
    [
      "another serial number",
      () => host.write(`sys/devices/pci0/${SATA}/ata1/block/sda/device/serial`, "S-other\n"),
      ["added disk S-other", "removed disk S-sata"],
    ],
    [
      "a second namespace",
      () => {
        disk("virtual/nvme-subsystem/nvme-subsys0/nvme0n2", { nsid: "2", wwid: "eui.2", serial: "S-nvme" });
        host.write("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n2/device/subsysnqn", "nqn.x\n");
      },
      ["changed disk S-nvme"],
    ],
    [
      "a disk without a serial number",
      () => disk("pci0/usb2/sdb", { "device/model": "STICK" }),
      ["added storage without a serial number (model STICK, WWN unknown)"],
    ],
    [
      "no list of block devices",
      () => renameSync(host.path("sys/class/block"), host.path("sys/class/gone")),
      ["unreadable"],
    ],
  ])("show %s", async (_what, change, findings) => {
    const baseline = await snapshot();
    change();
    expect(await foundSince(baseline)).toEqual(findings);
  });

  it("have other names after a boot, which is no finding", async () => {
    const baseline = await snapshot();
    renameSync(host.path("sys/class/block/sda"), host.path("sys/class/block/sdq"));
    expect(await foundSince(baseline)).toEqual(["clean"]);
  });
});
