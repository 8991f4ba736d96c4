import type { BlockDevice, Filesystem, HardwareDisk, Machine, Partition } from "../state/model.ts";
import { badFields, notOneOf, Refusal, required } from "./refusal.ts";
import type { Region } from "./region.ts";

const EFI_BYTES = 536_870_912;
/** How many bytes of a disk the partition table and the alignment of partitions take. */
const TABLE_BYTES = 6_119_424;
const LAYOUTS = ["flat", "lvm", "bcache", "vmfs6", "vmfs7", "blank", "custom"] as const;

function filesystem(region: Region, fstype: string, label: string | null, mountPoint: string | null): Filesystem {
  return { fstype, label, uuid: region.newUuid(), mountPoint };
}

function mounted(fs: Filesystem): string {
  return `${fs.fstype} formatted filesystem mounted at ${fs.mountPoint ?? ""}`;
}

function partition(region: Region, size: number, fs: Filesystem, bootable: boolean, usedFor = mounted(fs)): Partition {
  return { id: region.next("partition"), uuid: region.newUuid(), size, bootable, filesystem: fs, usedFor };
}

export function diskRecord(region: Region, disk: HardwareDisk, idPath: string | null): BlockDevice {
  return {
    id: region.next("blockdevice"),
    kind: "physical",
    name: disk.name,
    size: disk.size,
    blockSize: disk.blockSize,
    model: disk.model,
    serial: disk.serial,
    idPath,
    firmwareVersion: disk.firmwareVersion,
    uuid: null,
    numaNode: 0,
    tags: [...disk.tags],
    partitionTable: null,
    partitions: [],
    filesystem: null,
    usedFor: "Unused",
  };
}

export function physicalDisks(machine: Machine): BlockDevice[] {
  return machine.blockDevices.filter((device) => device.kind === "physical");
}

/** Returns the boot disk that a client has chosen, or the machine's first physical disk. */
export function bootDiskOf(machine: Machine): BlockDevice | null {
  const physical = physicalDisks(machine);
  return physical.find((device) => device.id === machine.bootDiskId) ?? physical[0] ?? null;
}

export function clearStorage(machine: Machine): void {
  machine.blockDevices = physicalDisks(machine);
  machine.volumeGroupIds = [];
  for (const device of machine.blockDevices) {
    device.partitions = [];
    device.partitionTable = null;
    device.filesystem = null;
    device.usedFor = "Unused";
  }
}

function describe(device: BlockDevice): void {
  const count = device.partitions.length;
  device.partitionTable = count > 0 ? "GPT" : null;
  device.usedFor = count === 0 ? "Unused" : `GPT partitioned with ${count} partition${count === 1 ? "" : "s"}`;
}

function parseSize(text: string | null, of: number): number | null {
  if (text === null || text === "") return null;
  const match = /^(\d+(?:\.\d+)?)([KMGT%]?)$/i.exec(text);
  if (match === null) throw badFields({ root_size: [`Enter a number of bytes, a size or a percentage: ${text}`] });
  const number = Number(match[1]);
  const unit = (match[2] ?? "").toUpperCase();
  if (unit === "%") return Math.floor((of * number) / 100);
  return Math.floor(number * 1000 ** " KMGT".indexOf(unit || " "));
}

export interface LayoutRequest {
  layout: string | null;
  rootDevice: string | null;
  rootSize: string | null;
}

/** The simulator can apply only MAAS's storage layouts `flat`, `lvm`, `blank` and `custom`. */
export function applyLayout(region: Region, machine: Machine, request: LayoutRequest): void {
  if (request.layout === null || request.layout === "") throw required("storage_layout");
  if (!LAYOUTS.some((name) => name === request.layout))
    throw badFields({ storage_layout: [notOneOf(request.layout, "storage_layout", LAYOUTS)] });
  const boot = bootDiskOf(machine);
  if (boot === null) throw new Refusal(400, "Machine is missing a boot disk; no storage layout can be applied.");
  const root =
    request.rootDevice === null
      ? boot
      : physicalDisks(machine).find((device) => String(device.id) === request.rootDevice);
  if (root === undefined)
    throw badFields({
      root_device: [
        notOneOf(
          request.rootDevice ?? "",
          "root_device",
          physicalDisks(machine).map((device) => String(device.id)),
        ),
      ],
    });
  if (
    request.layout !== "flat" &&
    request.layout !== "lvm" &&
    request.layout !== "blank" &&
    request.layout !== "custom"
  ) {
    throw new Refusal(400, `The simulator has no ${request.layout} layout; ask for flat, lvm, blank or custom.`);
  }
  clearStorage(machine);
  if (request.layout === "blank" || request.layout === "custom") return;
  const efi = partition(region, EFI_BYTES, filesystem(region, "fat32", "efi", "/boot/efi"), true);
  boot.partitions.push(efi);
  const free = root.size - TABLE_BYTES - (root === boot ? EFI_BYTES : 0);
  const size = Math.min(parseSize(request.rootSize, root.size) ?? free, free);
  if (request.layout === "flat")
    root.partitions.push(partition(region, size, filesystem(region, "ext4", "root", "/"), false));
  else addLvm(region, machine, root, size);
  describe(boot);
  describe(root);
}

function addLvm(region: Region, machine: Machine, root: BlockDevice, size: number): void {
  root.partitions.push(
    partition(region, size, filesystem(region, "lvm-pv", null, null), false, "LVM volume for vgroot"),
  );
  machine.volumeGroupIds.push(region.next("volume_group"));
  const fs = filesystem(region, "ext4", "root", "/");
  machine.blockDevices.push({
    id: region.next("blockdevice"),
    kind: "virtual",
    name: "vgroot-lvroot",
    size: size - (size % (4 * 1024 * 1024)),
    blockSize: 4096,
    model: null,
    serial: null,
    idPath: null,
    firmwareVersion: null,
    uuid: region.newUuid(),
    numaNode: null,
    tags: [],
    partitionTable: null,
    partitions: [],
    filesystem: fs,
    usedFor: mounted(fs),
  });
}
