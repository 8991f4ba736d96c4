import { execFileSync } from "node:child_process";
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

  it("leaves out a device that vanishes while it is read", () => {
    device("pci0/sda", { dev: "8:0\n" });
    symlinkSync(host.path("sys/devices/pci0/sdx"), host.path("sys/class/block/sdx"));
    expect(readDiskPicture(host.root).devices.map(({ name }) => name)).toEqual(["sda"]);
  });

  it("has the character devices that reach a disk", () => {
    for (const [name, nqn] of [
      ["nvme0", "nqn.x"],
      ["nvme1", "nqn.y"],
    ] as const)
      for (const [file, text] of Object.entries({ serial: `S-${name}`, subsysnqn: nqn, dev: `241:${name.slice(-1)}` }))
        host.write(`sys/class/nvme/${name}/${file}`, text);
    device("pci0/nvme7n1", { dev: "259:0\n", "device/serial": "S-nvme1", "device/subsysnqn": "nqn.y" });
    for (const name of ["ng7n1", "ng7n2", "ng70n1"]) host.write(`sys/class/nvme-generic/${name}/dev`, `240:${name}`);
    device("pci0/sda", { dev: "8:0\n", "device/scsi_generic/sg2/dev": "21:2", "device/bsg/0:0:0:0/dev": "248:0" });
    const { devices } = readDiskPicture(host.root);
    expect(devices.map(({ characters }) => characters)).toEqual([
      ["241:1", "240:ng7n1", "240:ng7n2"],
      ["21:2", "248:0"],
    ]);
  });

  const REFUSED = { mayErase: false, reason: "in_use" };
  it.skipIf(process.getuid?.() !== 0)(
    "names loop devices and exports as users of the disk (SKIPPED unless root)",
    () => {
      const [sda, nvme, free] = ["S-sda", "S-nvme", "S-free"].map((serial) => ({ serial, wwn: null }));
      device("pci0/sda", { dev: "8:0\n", serial: "S-sda" });
      device("pci0/nvme0n1", { dev: "259:0\n", "device/serial": "S-nvme" });
      device("pci0/nvme1n1", { dev: "259:1\n", "device/serial": "S-free" });
      mkdirSync(host.path("dev"));
      for (const [name, major] of [
        ["mine", 8],
        ["victim", 259],
      ])
        execFileSync("mknod", [host.path(`dev/${name}`), "b", String(major), "0"]);
      host.write("file", "a regular file");
      host.write("proc/self/mountinfo", "31 21 0:44 / /net rw - nfs4 server:/ rw\n");
      const judge = () => {
        const picture = readDiskPicture(host.root);
        return [sda, nvme, free].map((one) => (one === undefined ? null : judgeDisk(picture, one)));
      };
      const none = [{ mayErase: true }, { mayErase: true }, { mayErase: true }];
      expect(judge()).toMatchObject(none);
      device("virtual/block/loop0", { dev: "7:0\n", "loop/backing_file": "/dev/mine\n" });
      const nvmet = "sys/kernel/config/nvmet/subsystems/nqn.e";
      host.write(`${nvmet}/passthru/device_path`, "(null)\n");
      host.write(`${nvmet}/namespaces/1/device_path`, "/dev/victim\n");
      expect(judge()).toMatchObject([REFUSED, REFUSED, { mayErase: true }]);
      host.write("sys/devices/virtual/block/loop0/loop/backing_file", "/file\n");
      host.write(`${nvmet}/namespaces/1/device_path`, "/net/image\n");
      expect(judge()).toMatchObject(none);
      const lio = "sys/kernel/config/target/core/iblock_0/a";
      host.write(`${lio}/udev_path`, "/dev/mine\n");
      expect(judge()).toMatchObject([REFUSED, { mayErase: true }, { mayErase: true }]);
      host.write(`${lio}/udev_path`, "\n");
      host.write(`${lio}/info`, "Status: ACTIVATED\n    TCM FILEIO ID: 0 File: /dev/victim Size: 4096 Mode: O_DSYNC\n");
      expect(judge()).toMatchObject([{ mayErase: true }, REFUSED, { mayErase: true }]);
      host.write("sys/devices/virtual/block/loop0/loop/backing_file", "/dev/mine (deleted)\n");
      expect(judge()).toMatchObject([REFUSED, REFUSED, REFUSED]);
    },
  );

  it("says that users are unknown if a module exports disks and its configuration cannot be read", () => {
    host.write("sys/module/nvmet/initstate", "live\n");
    expect(readDiskPicture(host.root).unclearUsers).toEqual(["the kernel module nvmet"]);
    host.write("sys/kernel/config/nvmet/subsystems/nqn.e/attr_serial", "1");
    expect(readDiskPicture(host.root).unclearUsers).toEqual([]);
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
