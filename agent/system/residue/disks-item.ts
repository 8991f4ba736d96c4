import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { diskEntryName } from "../../../shared/residue/disk-names.ts";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { type BlockDevice, controllersOf, type NvmeController } from "../../storage/disk-rules.ts";
import { isDisk, isOwnDisk } from "../../storage/disk-sample.ts";
import { readHardware } from "../storage/block-devices.ts";
import { isUnreadable } from "../storage/sysfs.ts";
import { namesIn, type Reading, textOf, Unreadable, valued } from "./reading.ts";

const BLOCK = "sys/class/block";
const NVME = "sys/class/nvme";
const PCI = "/sys/bus/pci/devices";
/** The first digits of the PCI class of every controller of disks: NVMe, SATA, SAS, SCSI, RAID and virtio controllers. */
const STORAGE_CLASS = "0x01";

/**
 * A tenant with the rights of root can hide a disk: by a detached namespace, an unbound driver, or a removed PCI device. A hidden disk has no entry
 * in the residue snapshot, but the disk's controller may have a new entry.
 */
export async function readDisks(reading: Reading): Promise<ResidueEntry[]> {
  if (!existsSync(join(reading.root, BLOCK)))
    throw new Unreadable(`/${BLOCK} does not exist, so the host's disks are unknown.`);
  const { devices, controllers } = readHardware(reading.root);
  const disks = devices.filter(isDisk);
  const free = controllers.filter((one) => !disks.some((disk) => controllersOf([one], disk).length > 0));
  const used = controllers.filter((one) => !free.includes(one));
  const paths = [
    ...disks.map(({ name }) => realPath(reading.root, BLOCK, name)),
    ...used.map(({ name }) => realPath(reading.root, NVME, name)),
  ];
  return [
    ...disks.map((disk) => valued(reading, nameOf(disk), identityOf(disk))),
    ...free.map((one) => freeController(reading, one)),
    ...(await pciControllers(reading, paths)),
  ];
}

const nameOf = (device: BlockDevice): string => {
  const { serial, model, wwn } = device;
  if (serial !== null && !isOwnDisk(device)) return `removable or remote storage ${serial}`;
  return serial === null
    ? `storage without a serial number (model ${model || "unknown"}, WWN ${wwn ?? "unknown"})`
    : diskEntryName(serial);
};

/**
 * The residue snapshot contains only facts about a disk that do not change while the host has the disk. The facts about a disk in the residue
 * snapshot do not include the disk's name, because Linux may give the disk another name at each boot.
 */
const identityOf = ({ model, wwn, bus, bytes, namespaceId }: BlockDevice): string =>
  JSON.stringify([model, wwn, bus, bytes, namespaceId]);

const freeController = (reading: Reading, { name, serial, transport }: NvmeController): ResidueEntry =>
  valued(reading, `NVMe controller ${serial ?? name} without a disk`, transport ?? "");

/** Returns the storage controllers on the PCI bus that have no disk, or no driver that could show a disk. */
async function pciControllers(reading: Reading, paths: readonly string[]): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  for (const address of await namesIn(reading, PCI)) {
    const kind = await textOf(reading, `${PCI}/${address}/class`);
    if (!kind.startsWith(STORAGE_CLASS) || paths.some((path) => path.includes(`/${address}/`))) continue;
    const hasDriver = existsSync(join(reading.root, PCI, address, "driver"));
    const ids = await Promise.all(["vendor", "device"].map((file) => textOf(reading, `${PCI}/${address}/${file}`)));
    const name = `storage controller ${address} without a ${hasDriver ? "disk" : "driver"}`;
    entries.push(valued(reading, name, JSON.stringify([kind, ...ids])));
  }
  return entries;
}

/** Returns an empty text if the device has just vanished from /sys/devices. */
function realPath(root: string, folder: string, name: string): string {
  try {
    return realpathSync(join(root, folder, name));
  } catch (error) {
    if (isUnreadable(error)) return "";
    throw error;
  }
}
