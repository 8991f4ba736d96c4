export interface BlockDevice {
  readonly name: string;
  readonly number: string;
  /** The name of the disk that contains the partition; null for a device that is no partition. */
  readonly partitionOf: string | null;
  readonly serial: string | null;
  readonly wwn: string | null;
  readonly model: string;
  readonly firmware: string | null;
  readonly bytes: number;
  /** The kind of commands by which the host talks to the block device. */
  readonly bus: DiskBus;
  readonly readOnly: boolean;
  readonly removable: boolean;
  readonly isVirtual: boolean;
  /** The volumes of LVM, RAID, encryption or a cache, the loop devices, and the exports to other hosts that use the block device. */
  readonly holders: readonly string[];
  /** The character devices by which a program can reach the block device even while another program has opened it exclusively. */
  readonly characters: readonly string[];
  /**
   * The NVMe subsystem of the block device; null for a device of another kind. Several NVMe namespaces (block devices of one NVMe disk) may share one
   * subsystem.
   */
  readonly subsystem: string | null;
  /** The number of the NVMe namespace in its subsystem; null for a block device of another kind. */
  readonly namespaceId: string | null;
  /** True if the device is one of several paths to an NVMe namespace, which Linux hides behind the namespace's own block device. */
  readonly isPath: boolean;
}

/**
 * The kinds of commands by which the host talks to its disks. The bus `network` means a disk on another host, and `usb` a disk that somebody has
 * plugged in.
 */
export type DiskBus = "nvme" | "ata" | "scsi" | "usb" | "network" | "other";

/** The host reaches an NVMe subsystem through one or more controllers. An NVMe disk with two ports has two controllers. */
export interface NvmeController {
  /** The NVMe disk `nvme0n1` need not belong to the controller `nvme0`. */
  readonly name: string;
  readonly subsystem: string | null;
  readonly serial: string | null;
  readonly transport: string | null;
  /** The number of the controller in its NVMe subsystem; null if Linux does not tell the number. */
  readonly id: number | null;
}

/** A mount of a block device as the agent's mount namespace shows it. */
export interface DiskMount {
  readonly name: string;
  readonly path: string;
  /** `from` is the folder of the mounted file system that the mount shows: The root folder `/`, or any other folder for a bind mount. */
  readonly from: string;
  /**
   * True if Linux names the mounted device by its number. For a file system on several devices, Linux names one of these devices, and only by its
   * path.
   */
  readonly isByNumber: boolean;
}

export interface DiskPicture {
  readonly devices: readonly BlockDevice[];
  readonly controllers: readonly NvmeController[];
  /** The loop devices and exports for which the agent cannot tell the disk that they use. */
  readonly unclearUsers: readonly string[];
  readonly mounted: ReadonlySet<string>;
  readonly mounts: readonly DiskMount[];
  readonly swap: ReadonlySet<string>;
  /** True if the host uses a ZFS pool, because Linux does not show the disks of a ZFS pool. */
  readonly hasZfs: boolean;
}

/** The task's order names by serial number and WWN the disks that the agent may erase. */
export interface OrderedDisk {
  readonly serial: string;
  readonly wwn: string | null;
}

export type DiskVerdict =
  /** `mounts` lists the disk's mounts, which the agent must unmount before it erases the disk. */
  | { readonly mayErase: true; readonly device: BlockDevice; readonly mounts: readonly DiskMount[] }
  | { readonly mayErase: false; readonly reason: DiskRefusal; readonly detail: string };

/** The closed set of reasons for which the agent may not erase a disk. */
export type DiskRefusal =
  | "not_found"
  | "ambiguous"
  | "other_wwn"
  | "not_a_disk"
  | "read_only"
  | "removable"
  | "not_local"
  | "raid_volume"
  | "other_namespace"
  | "mounted"
  | "swap"
  | "in_use"
  | "zfs";

/**
 * Words in model names that belong to a BMC's virtual media or to a RAID controller's volumes. Only the RAID controller, not the host, can erase the
 * disks behind a RAID volume.
 */
const NOT_ONE_DISK = /\b(virtual|boss|perc|megaraid|smart array|logical volume|raid|iscsi|lun)\b/i;

/**
 * Returns the controllers by which the host reaches an NVMe disk. An NVMe controller belongs to a disk only if both have the same serial number and
 * the same subsystem.
 */
export const controllersOf = (
  controllers: readonly NvmeController[],
  disk: Pick<BlockDevice, "serial" | "subsystem">,
): NvmeController[] =>
  controllers.filter(({ serial, subsystem }) => serial === disk.serial && subsystem === disk.subsystem);

/** Returns the host's disks with the given serial number, but no partitions and no hidden paths to an NVMe namespace. */
export const disksWithSerial = ({ devices }: DiskPicture, serial: string): BlockDevice[] =>
  devices.filter((one) => one.partitionOf === null && !one.isPath && one.serial === serial);

/** Returns NVMe controllers that have the disk's serial number but belong to another disk. */
export const strangersOf = (
  controllers: readonly NvmeController[],
  disk: Pick<BlockDevice, "serial" | "subsystem">,
): NvmeController[] =>
  controllers.filter(({ serial, subsystem }) => serial === disk.serial && subsystem !== disk.subsystem);

/**
 * The agent may erase only a disk that is certainly a free data disk and that the order names. A mounted disk counts as free if `mayUnmount` contains
 * each of its mount points.
 */
export function judgeDisk(picture: DiskPicture, ordered: OrderedDisk, mayUnmount: readonly string[] = []): DiskVerdict {
  const refuse = (reason: DiskRefusal, detail: string): DiskVerdict => ({ mayErase: false, reason, detail });
  const found = disksWithSerial(picture, ordered.serial);
  const [device] = found;
  if (device === undefined) {
    const own = picture.controllers.filter(({ serial }) => serial === ordered.serial);
    if (own.length === 0) return refuse("not_found", "No disk of this host has the serial number.");
    return refuse("not_found", `The NVMe controller ${namesOf(own)} has the serial number and shows no disk.`);
  }
  // Several namespaces of one NVMe controller, and several paths to one SCSI disk, have the same serial number.
  if (found.length > 1) return refuse("ambiguous", `The devices ${namesOf(found)} have this serial number.`);
  const strangers = strangersOf(picture.controllers, device);
  if (strangers.length > 0)
    return refuse("ambiguous", `${namesOf([device, ...strangers])} are different disks with this serial number.`);
  if (ordered.wwn !== null && ordered.wwn !== device.wwn)
    return refuse("other_wwn", `${device.name} has another WWN than the order names.`);
  if (device.isVirtual) return refuse("not_a_disk", `${device.name} is no disk.`);
  if (device.readOnly)
    return refuse("read_only", `${device.name} is write-protected, so an erase would fail or be refused.`);
  if (device.removable) return refuse("removable", `${device.name} is removable, as the virtual media of a BMC are.`);
  if (device.bus === "usb" || device.bus === "network")
    return refuse("not_local", `${device.name} is no disk inside this host (${device.bus}).`);
  if (NOT_ONE_DISK.test(device.model))
    return refuse("raid_volume", `${device.name} is a volume of a controller (${device.model}).`);
  return judgeUse(picture, device, mayUnmount);
}

function judgeUse(picture: DiskPicture, device: BlockDevice, mayUnmount: readonly string[]): DiskVerdict {
  const refuse = (reason: DiskRefusal, detail: string): DiskVerdict => ({ mayErase: false, reason, detail });
  const siblings = picture.devices.filter(
    (one) =>
      one.partitionOf === null && (one === device || (device.subsystem !== null && one.subsystem === device.subsystem)),
  );
  // The erase of an NVMe disk concerns all namespaces of the disk's subsystem, but the order names only one of them.
  const others = siblings.filter((one) => one !== device && !one.isPath);
  const users = siblings.flatMap((one) => withUsers(picture, one));
  const mounted = users.filter(({ name }) => picture.mounted.has(name));
  const fault = mountFault(picture, device, mounted, mayUnmount);
  if (fault !== null) return refuse("mounted", fault);
  const swap = users.filter(({ name }) => picture.swap.has(name));
  if (swap.length > 0) return refuse("swap", `${namesOf(swap)} is swap space.`);
  const volumes = users.flatMap(({ holders }) => holders);
  if (volumes.length > 0) {
    const known = volumes.every((name) => VOLUME.test(name));
    const next = known ? `${NO_VOLUMES} Take the volume apart first.` : "End this use first.";
    return refuse("in_use", `${volumes.slice(0, 5).join(", ")} uses ${device.name}. ${next}`);
  }
  const unclear = picture.unclearUsers;
  if (unclear.length > 0)
    return refuse("in_use", `It is unknown which disk ${unclear.slice(0, 5).join(", ")} uses. End this use first.`);
  if (others.length > 0)
    return refuse(
      "other_namespace",
      `${namesOf(others)} belongs to the same NVMe disk, and the order does not name it.`,
    );
  if (picture.hasZfs) return refuse("zfs", "A ZFS pool is in use, and Linux does not show whether it uses this disk.");
  return { mayErase: true, device, mounts: mountsOf(picture, mounted) };
}

/** Matches the kernel's names of volumes on disks: RAID, device mapper (LVM, encryption), and caches. */
const VOLUME = /^(md|dm-|bcache)\d/;
const NO_VOLUMES =
  "Muster purges no disk below RAID, LVM, encryption or a cache, because it cannot make such a volume again.";

const mountsOf = (picture: DiskPicture, mounted: readonly BlockDevice[]): DiskMount[] =>
  picture.mounts.filter((mount) => mounted.some(({ name }) => name === mount.name));

/**
 * Returns why the mounts of a disk forbid the disk's erase, or null if they do not. A data disk has one file system, or one on each partition, and
 * each is mounted at one place only.
 */
function mountFault(
  picture: DiskPicture,
  device: BlockDevice,
  mounted: readonly BlockDevice[],
  mayUnmount: readonly string[],
): string | null {
  const others = mounted.filter((one) => one !== device && one.partitionOf !== device.name);
  if (others.length > 0) {
    const isVolume = others.every(({ name }) => VOLUME.test(name));
    return `${namesOf(others)} on ${device.name} is mounted. ${isVolume ? NO_VOLUMES : "Unmount it first."}`;
  }
  for (const { name } of mounted) {
    const mounts = picture.mounts.filter((mount) => mount.name === name);
    const unlisted = mounts.find(({ path, isByNumber }) => !isByNumber || !mayUnmount.includes(path));
    if (unlisted !== undefined)
      return `${name} is mounted at ${unlisted.path}, which is no scratch folder or share of the profile. Unmount it first.`;
    const [only, more] = mounts;
    if (only === undefined || more !== undefined || only.from !== "/")
      return `${name} is mounted, but not as one whole file system at one place. Unmount it first.`;
  }
  return null;
}

export function withUsers(picture: DiskPicture, device: BlockDevice): BlockDevice[] {
  const reached = new Map<string, BlockDevice>();
  const open = [device];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (reached.has(one.name)) continue;
    reached.set(one.name, one);
    const { name, holders } = one;
    open.push(...picture.devices.filter((other) => other.partitionOf === name || holders.includes(other.name)));
  }
  return [...reached.values()];
}

const namesOf = (devices: readonly Pick<BlockDevice, "name">[]): string =>
  devices
    .slice(0, 5)
    .map(({ name }) => name)
    .join(", ");
