import { statSync } from "node:fs";
import { join } from "node:path";
import { deviceNumber } from "../device-holders.ts";
import { isNetworkMount, type Mount } from "../mounts.ts";
import { namesIn, textOf } from "./sysfs.ts";

/**
 * A kernel service, such as a loop device or an export to other hosts, can use a disk without opening the disk exclusively. Linux shows a loop device
 * or an export neither in the disk's folder `holders` in sysfs nor as a process.
 */
export interface DiskUser {
  readonly name: string;
  /** The number of the device that the kernel service uses; null if the agent cannot find out which device it is. */
  readonly number: string | null;
}

const BLOCK = "sys/class/block";
const NVMET = "sys/kernel/config/nvmet/subsystems";
const LIO = "sys/kernel/config/target/core";
/** The kernel modules that export disks to other hosts, each with the folder in which it lists its exports. */
const EXPORTERS = { nvmet: NVMET, target_core_mod: LIO } as const;

/** A kernel service, such as a loop device, and the path of the device file or other file that it uses. */
interface Named {
  readonly name: string;
  readonly path: string;
}

/** Finds the loop devices and exports that use a device file, or whose path the agent cannot resolve. */
export function readDiskUsers(root: string, mounts: readonly Mount[]): DiskUser[] {
  const unlisted = Object.entries(EXPORTERS).flatMap(([module, folder]): DiskUser[] =>
    textOf(join(root, "sys/module", module, "initstate")) !== null && !isFolder(join(root, folder))
      ? [{ name: `the kernel module ${module}`, number: null }]
      : [],
  );
  const named = [...loops(root), ...nvmeExports(root), ...scsiExports(root)];
  return [...unlisted, ...named.flatMap((one) => userOf(root, one, mounts))];
}

const loops = (root: string): Named[] =>
  namesIn(join(root, BLOCK)).flatMap((name) => {
    const path = textOf(join(root, BLOCK, name, "loop/backing_file"));
    return path === null ? [] : [{ name, path }];
  });

function nvmeExports(root: string): Named[] {
  return namesIn(join(root, NVMET)).flatMap((subsystem) => {
    const folder = join(root, NVMET, subsystem);
    const files = [
      join(folder, "passthru/device_path"),
      ...namesIn(join(folder, "namespaces")).map((one) => join(folder, "namespaces", one, "device_path")),
    ];
    return files.flatMap((file) => {
      // For an export without a device, the kernel's NVMe target writes `(null)` as the device's path.
      const path = textOf(file);
      return path === null || path === "(null)" ? [] : [{ name: `the NVMe-oF export ${subsystem}`, path }];
    });
  });
}

function scsiExports(root: string): Named[] {
  return namesIn(join(root, LIO)).flatMap((adapter) =>
    namesIn(join(root, LIO, adapter)).flatMap((name) => {
      const folder = join(root, LIO, adapter, name);
      const told = [textOf(join(folder, "udev_path")), /File: (\/\S+)/.exec(textOf(join(folder, "info")) ?? "")?.[1]];
      return told.flatMap((path) => (path ? [{ name: `the SCSI export ${adapter}/${name}`, path }] : []));
    }),
  );
}

/**
 * A loop device or an export stores the path of what it uses. A loop device or an export on a regular file does not count as a user of the disk,
 * because the mount of the file's file system already claims the disk.
 */
function userOf(root: string, { name, path }: Named, mounts: readonly Mount[]): DiskUser[] {
  // Access to a file of a network file system hangs while the server is gone, and the file is on no local disk.
  if (path.startsWith("/") && isNetworkMount(mountOf(path, mounts))) return [];
  try {
    const stat = statSync(join(root, path));
    return stat.isBlockDevice() || stat.isCharacterDevice() ? [{ name, number: deviceNumber(stat) }] : [];
  } catch {
    // If nobody knows which device a loop device or export uses, the agent refuses to erase any disk of the host.
    return [{ name: `${name} (${path})`, number: null }];
  }
}

/** If two mounts have one mount point, the later mount is visible. */
const mountOf = (path: string, mounts: readonly Mount[]): Mount | undefined =>
  mounts
    .filter((one) => path === one.path || path.startsWith(one.path === "/" ? "/" : `${one.path}/`))
    .reduce<Mount | undefined>((best, one) => (one.path.length >= (best?.path.length ?? 0) ? one : best), undefined);

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
