import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { BlockDevice, DiskPicture } from "../../storage/disk-rules.ts";
import { isMissing } from "../files.ts";
import { parseMounts } from "../mounts.ts";

const DEVICES = "sys/class/block";

/** Reads what sysfs and /proc tell about the block devices. Nothing is read from a disk itself, so a hanging disk does not hold the reader. */
export function readDiskPicture(root: string): DiskPicture {
  const devices = readdirSync(join(root, DEVICES))
    .sort()
    .map((name) => readDevice(root, name));
  const mounts = parseMounts(readFileSync(join(root, "proc/self/mountinfo"), "latin1"));
  const swaps = (textOf(join(root, "proc/swaps")) ?? "").split("\n").slice(1);
  const named = namesByPath(root, devices);
  return {
    devices,
    mounted: new Set(
      mounts.flatMap(({ device, source }) => [
        ...devices.filter(({ number }) => number === device).map(({ name }) => name),
        ...(named.get(basename(source)) ?? []),
      ]),
    ),
    swap: new Set(swaps.flatMap((line) => named.get(basename(line.split(/\s/)[0] ?? "")) ?? [])),
    hasZfs: mounts.some(({ type }) => type === "zfs"),
  };
}

/** The devices by the last part of their paths below /dev: by their own names, and by the names of volumes. */
function namesByPath(root: string, devices: readonly BlockDevice[]): Map<string, string[]> {
  const pairs = devices.flatMap(({ name }): [string, string[]][] => {
    const volume = textOf(join(root, DEVICES, name, "dm/name"));
    return [[name, [name]], ...(volume === null ? [] : [[volume, [name]] as [string, string[]]])];
  });
  return new Map(pairs);
}

function readDevice(root: string, name: string): BlockDevice {
  const folder = join(root, DEVICES, name);
  const text = (file: string): string | null => textOf(join(folder, file));
  const real = realpathSync(folder);
  return {
    name,
    number: text("dev") ?? "",
    partitionOf: text("partition") === null ? null : basename(dirname(real)),
    serial: text("device/serial") ?? text("serial") ?? vpdSerial(join(folder, "device/vpd_pg80")),
    wwn: text("wwid") ?? text("device/wwid"),
    model: text("device/model") ?? "",
    readOnly: text("ro") !== "0",
    removable: text("removable") === "1",
    isVirtual: real.includes("/devices/virtual/block/"),
    holders: namesIn(join(folder, "holders")),
    subsystem: text("device/subsysnqn"),
  };
}

/** The serial number that a SCSI or SATA disk tells in its page 0x80: a head of four bytes, and the number. */
function vpdSerial(file: string): string | null {
  try {
    return readFileSync(file).subarray(4).toString("latin1").trim() || null;
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim() || null;
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    // A device that disappeared has no users. A device without this folder is a partition of an old kernel or no disk.
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Many files of sysfs exist only for some kinds of devices, and some exist but answer with an error. */
const isUnreadable = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  ["ENOENT", "ENOTDIR", "EISDIR", "EINVAL", "EIO", "ENXIO", "ENODEV"].includes(String(error.code));
