import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../../test/fakes/hub/host-folder.ts";
import { judgeDisk } from "../../storage/disk-rules.ts";
import { readDiskPicture } from "./block-devices.ts";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
  mkdirSync(host.path("sys/class/block"), { recursive: true });
  host.write(
    "proc/self/mountinfo",
    "21 1 252:0 / / rw - ext4 /dev/mapper/vg-root rw\n30 21 0:40 / /data rw - btrfs /dev/sdb rw\n",
  );
  host.write("proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n");
});
afterEach(() => host.remove());

/** Makes a block device as sysfs shows it: a folder below /sys/devices, and a symbolic link to that folder in /sys/class/block. */
function device(path: string, files: Record<string, string>, holders: string[] = []): void {
  const name = path.split("/").at(-1) ?? "";
  for (const [file, text] of Object.entries({ ro: "0\n", removable: "0\n", ...files }))
    host.write(`sys/devices/${path}/${file}`, text);
  for (const holder of holders) mkdirSync(host.path(`sys/devices/${path}/holders/${holder}`), { recursive: true });
  symlinkSync(host.path(`sys/devices/${path}`), host.path(`sys/class/block/${name}`));
}

describe("the picture of the block devices", () => {
  it("has partitions, volumes, serial numbers, mounts and swap", () => {
    device("pci0/sda", { dev: "8:0\n", "device/vpd_pg80": "\0\0\0\x06 S-sda ", "device/wwid": "naa.1\n" });
    device("pci0/sda/sda1", { dev: "8:1\n", partition: "1\n" }, ["dm-0"]);
    device("pci0/sda/sda2", { dev: "8:2\n", partition: "2\n" });
    device("pci0/sdb", { dev: "8:16\n", "device/vpd_pg80": "\0\0\0\x06S-sdb" });
    device("pci0/nvme0n1", {
      dev: "259:0\n",
      "device/serial": "S-nvme \n",
      wwid: "eui.2\n",
      "device/subsysnqn": "nqn.x\n",
    });
    device("virtual/block/dm-0", { dev: "252:0\n", "dm/name": "vg-root\n" });
    const picture = readDiskPicture(host.root);
    expect([...picture.mounted].sort()).toEqual(["dm-0", "sdb"]);
    expect([...picture.swap]).toEqual(["sda2"]);
    expect(picture.devices.find(({ name }) => name === "sda1")).toMatchObject({
      partitionOf: "sda",
      holders: ["dm-0"],
    });
    const verdicts = ["S-sda", "S-sdb", "S-nvme"].map((serial) => judgeDisk(picture, { serial, wwn: null }));
    expect(verdicts).toMatchObject([
      { reason: "mounted" },
      { reason: "mounted" },
      { mayErase: true, device: { name: "nvme0n1", wwn: "eui.2" } },
    ]);
  });

  it("of this machine has all devices, and no mounted one may be erased", () => {
    const picture = readDiskPicture("/");
    expect(picture.devices.map(({ name }) => name)).toEqual(readdirSync("/sys/class/block").sort());
    const mounted = readFileSync("/proc/self/mountinfo", "utf8");
    for (const { name, number, serial } of picture.devices) {
      if (!mounted.includes(` ${number} `)) continue;
      expect([name, picture.mounted.has(name)]).toEqual([name, true]);
      if (serial !== null) expect([name, judgeDisk(picture, { serial, wwn: null }).mayErase]).toEqual([name, false]);
    }
  });
});
