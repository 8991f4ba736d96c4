import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import {
  type BlockDevice,
  controllersOf,
  type DiskBus,
  type DiskPicture,
  type NvmeController,
} from "../../storage/disk-rules.ts";
import { type Mount, parseMounts } from "../mounts.ts";
import { type DiskUser, readDiskUsers } from "./disk-users.ts";
import { isUnreadable, namesIn, readIfFolder, textOf } from "./sysfs.ts";

const DEVICES = "sys/class/block";
const CONTROLLERS = "sys/class/nvme";
const GENERIC = "sys/class/nvme-generic";
/** The folder in which Linux lists all devices of each mounted btrfs, a file system of which the list of mounts names only one device. */
const BTRFS = "sys/fs/btrfs";
/** The folder in which ZFS lists each imported pool, even a pool without a mounted file system. */
const ZFS_POOLS = "proc/spl/kstat/zfs";
const SECTOR_BYTES = 512;

/**
 * The agent learns about the host's block devices from sysfs and /proc. Reading sysfs and /proc needs no answer of a disk, so a hanging disk cannot
 * block the agent.
 */
export function readDiskPicture(root: string): DiskPicture {
  const { controllers, devices: plain } = readHardware(root);
  const mounts = parseMounts(readFileSync(join(root, "proc/self/mountinfo"), "latin1"));
  const users = readDiskUsers(root, mounts);
  const devices = plain.map((one) => ({ ...one, holders: [...one.holders, ...usersOf(one, users)] }));
  const swaps = (textOf(join(root, "proc/swaps")) ?? "").split("\n").slice(1);
  const named = namesByPath(root, devices);
  const ofBtrfs = readIfFolder(join(root, BTRFS))
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => namesIn(join(root, BTRFS, name, "devices")));
  const namesOf = ({ device, source }: Mount): string[] => [
    ...devices.filter(({ number }) => number === device).map(({ name }) => name),
    ...(named.get(basename(source)) ?? []),
  ];
  return {
    devices,
    controllers,
    unclearUsers: users.filter(({ number }) => number === null).map(({ name }) => name),
    mounted: new Set([...ofBtrfs, ...mounts.flatMap(namesOf)]),
    mounts: mounts.flatMap((mount) =>
      [...new Set(namesOf(mount))].map((name) => ({
        name,
        path: mount.path,
        from: mount.from,
        isByNumber: devices.some((one) => one.name === name && one.number === mount.device),
      })),
    ),
    swap: new Set(swaps.flatMap((line) => named.get(basename(line.split(/\s/)[0] ?? "")) ?? [])),
    hasZfs:
      mounts.some(({ type }) => type === "zfs") ||
      readIfFolder(join(root, ZFS_POOLS)).some((entry) => entry.isDirectory()),
  };
}

/** `readHardware` reads only the block devices and the NVMe controllers, and not the mounts, volumes and programs that use them. */
export function readHardware(root: string): Pick<DiskPicture, "devices" | "controllers"> {
  const controllers = namesIn(join(root, CONTROLLERS)).map((name) => readController(root, name));
  const names = readdirSync(join(root, DEVICES)).sort();
  return { controllers, devices: names.flatMap((name) => readDevice(root, name, controllers) ?? []) };
}

function namesByPath(root: string, devices: readonly BlockDevice[]): Map<string, string[]> {
  const pairs = devices.flatMap(({ name }): [string, string[]][] => {
    const volume = textOf(join(root, DEVICES, name, "dm/name"));
    return [[name, [name]], ...(volume === null ? [] : [[volume, [name]] as [string, string[]]])];
  });
  return new Map(pairs);
}

/** Returns the kernel services that use a disk directly or through one of its character devices. */
const usersOf = ({ number, characters }: BlockDevice, users: readonly DiskUser[]): string[] =>
  users.filter((one) => one.number === number || characters.includes(one.number ?? "")).map(({ name }) => name);

/** Returns the character devices, for example NVMe controllers, `sg` and `bsg`, by which a program reaches a disk past its block device. */
function charactersOf(root: string, name: string, controllers: readonly NvmeController[]): string[] {
  const instance = /^nvme(\d+)(?:c\d+)?n\d+$/.exec(name)?.[1];
  const generic =
    instance === undefined ? [] : namesIn(join(root, GENERIC)).filter((one) => one.startsWith(`ng${instance}n`));
  const folders = ["scsi_generic", "bsg"].map((kind) => join(root, DEVICES, name, "device", kind));
  const files = [
    ...controllers.map((one) => join(root, CONTROLLERS, one.name)),
    ...generic.map((one) => join(root, GENERIC, one)),
    ...folders.flatMap((folder) => namesIn(folder).map((one) => join(folder, one))),
  ];
  return files.flatMap((file) => textOf(join(file, "dev")) ?? []);
}

function readController(root: string, name: string): NvmeController {
  const text = (file: string): string | null => textOf(join(root, CONTROLLERS, name, file));
  const id = text("cntlid");
  return {
    name,
    subsystem: text("subsysnqn"),
    serial: text("serial"),
    transport: text("transport"),
    id: id === null ? null : Number(id),
  };
}

function busOf(name: string, real: string, vendor: string | null, controllers: readonly NvmeController[]): DiskBus {
  if (/[/]usb\d/.test(real)) return "usb";
  if (name.startsWith("nvme")) {
    if (controllers.length === 0) return "other";
    return controllers.every(({ transport }) => transport === "pcie") ? "nvme" : "network";
  }
  if (!/^sd[a-z]+\d*$/.test(name)) return "other";
  if (/[/](session|rport-)\d/.test(real)) return "network";
  return vendor === "ATA" ? "ata" : "scsi";
}

function readDevice(root: string, name: string, controllers: readonly NvmeController[]): BlockDevice | null {
  const folder = join(root, DEVICES, name);
  const text = (file: string): string | null => textOf(join(folder, file));
  const real = realPathOf(folder);
  if (real === null) return null;
  const serial = text("device/serial") ?? text("serial") ?? vpdSerial(join(folder, "device/vpd_pg80"));
  const subsystem = text("device/subsysnqn");
  const own = controllersOf(controllers, { serial, subsystem });
  return {
    name,
    number: text("dev") ?? "",
    partitionOf: text("partition") === null ? null : basename(dirname(real)),
    serial,
    wwn: text("wwid") ?? text("device/wwid"),
    model: text("device/model") ?? "",
    firmware: text("device/firmware_rev") ?? text("device/rev"),
    bytes: Number(text("size") ?? 0) * SECTOR_BYTES,
    bus: busOf(name, real, text("device/vendor"), own),
    readOnly: text("ro") !== "0",
    removable: text("removable") === "1",
    isVirtual: real.includes("/devices/virtual/block/"),
    holders: namesIn(join(folder, "holders")),
    characters: charactersOf(root, name, name.startsWith("nvme") ? own : []),
    subsystem,
    namespaceId: text("nsid"),
    isPath: /^nvme\d+c\d+n\d+$/.test(name) || text("hidden") === "1",
  };
}

function realPathOf(folder: string): string | null {
  try {
    return realpathSync(folder);
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}

/** A SCSI or SATA disk tells its serial number in page 0x80, behind a header of four bytes. */
function vpdSerial(file: string): string | null {
  try {
    return readFileSync(file).subarray(4).toString("latin1").trim() || null;
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}
