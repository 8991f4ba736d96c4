import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { BlockDevice, DiskPicture } from "../../storage/disk-rules.ts";
import { isMissing } from "../files.ts";
import { parseMounts } from "../mounts.ts";

const DEVICES = "sys/class/block";

/**
 * Reads what sysfs and /proc tell about the host's block devices. `readDiskPicture` reads nothing from a disk itself, so a hanging disk cannot block
 * it.
 */
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

/** The names of the block devices, by the last part of each path below /dev: the device's own name or the name of a volume. */
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

/** The serial number that a SCSI or SATA disk reports in its page 0x80, behind a header of four bytes. */
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
    // A block device that has disappeared has no holders. A block device without a folder `holders` is a partition under an old kernel, or no disk.
    if (isMissing(error)) return [];
    throw error;
  }
}

/** True if a sysfs file is missing or cannot be read: many sysfs files exist only for some kinds of devices, and some return an error. */
const isUnreadable = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  ["ENOENT", "ENOTDIR", "EISDIR", "EINVAL", "EIO", "ENXIO", "ENODEV"].includes(String(error.code));
