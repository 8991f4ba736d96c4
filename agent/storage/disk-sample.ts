import { createHmac } from "node:crypto";
import { type DiskSample, MOST_PRINTS } from "../../shared/tasks/sample-disks.ts";
import { type BlockDevice, type DiskPicture, disksWithSerial, strangersOf, withUsers } from "./disk-rules.ts";
import { BLOCK_BYTES, drawBlocks, END_BLOCKS } from "./purge-sample.ts";

/** Optical drives and floppy drives hold exchangeable media, on which no data of a host is expected. */
const MEDIA_DRIVE = /^(sr|fd)\d+$/;

/** A volume, a partition, a RAM disk and a hidden path to an NVMe namespace do not count as disks. */
export const isDisk = ({ name, partitionOf, isPath, isVirtual }: BlockDevice): boolean =>
  partitionOf === null && !isPath && !isVirtual && !MEDIA_DRIVE.test(name);

/**
 * True if the disk is a permanent part of the host. A disk on another host, a USB disk and a virtual medium of the BMC are no permanent parts of the
 * host.
 */
export const isOwnDisk = (device: BlockDevice): boolean =>
  isDisk(device) && !device.removable && device.bus !== "network" && device.bus !== "usb";

/** The mount points of the installed system's root and boot files. */
const SYSTEM_PATH = /^\/($|(boot|usr|var)(\/|$))/;

/** True if the running system has its root, its boot files or its swap on the disk, also through volumes. */
export const holdsSystem = (picture: DiskPicture, device: BlockDevice): boolean =>
  withUsers(picture, device).some(
    ({ name }) =>
      picture.swap.has(name) || picture.mounts.some((mount) => mount.name === name && SYSTEM_PATH.test(mount.path)),
  );

/**
 * Returns why the agent does not read the blocks of a disk, or null if it reads them. The agent reads the blocks of write-protected disks too,
 * because an erase may have left out a protected disk.
 */
export function unreadReason(picture: DiskPicture, device: BlockDevice, dataOnly: boolean): string | null {
  const { serial } = device;
  if (dataOnly && holdsSystem(picture, device)) return "The running system is on the disk.";
  if (serial === null) return "The disk has no serial number, so its blocks cannot be compared.";
  if (disksWithSerial(picture, serial).length > 1 || strangersOf(picture.controllers, device).length > 0)
    return "Several disks or namespaces have the serial number.";
  return isOwnDisk(device) ? null : "The disk does not stay with the host.";
}

type BlockKind = "zeros" | "one_byte" | "data" | "unreadable";
function kindOf(bytes: Buffer | null): BlockKind {
  if (bytes === null) return "unreadable";
  const [first = 0] = bytes;
  if (!bytes.every((byte) => byte === first)) return "data";
  return first === 0 ? "zeros" : "one_byte";
}

const digestOf = (key: string, block: number, bytes: Buffer): string =>
  createHmac("sha256", Buffer.from(key, "hex"))
    .update(`${block}/`)
    .update(bytes)
    .digest()
    .subarray(0, 12)
    .toString("base64url");

interface Order {
  readonly seed: string;
  readonly key: string;
  readonly again: readonly number[];
}

/**
 * The agent reads the disk's blocks that the order's random number determines, and the blocks that the order names. Returns null for a block that the
 * agent cannot read.
 */
export function sampleOf(blocks: number, order: Order, read: (block: number) => Buffer | null): DiskSample {
  const counts: Record<BlockKind, number> = { zeros: 0, one_byte: 0, data: 0, unreadable: 0 };
  const held: { block: number; digest: string }[] = [];
  for (const block of drawBlocks(order.seed, blocks)) {
    const bytes = read(block);
    const kind = kindOf(bytes);
    counts[kind] += 1;
    if (kind === "data" && bytes !== null) held.push({ block, digest: digestOf(order.key, block, bytes) });
  }
  const again = order.again.flatMap((block) => {
    const bytes = block < blocks ? read(block) : null;
    return bytes === null ? [] : [{ block, digest: digestOf(order.key, block, bytes) }];
  });
  return { ...counts, prints: chosenPrints(held, blocks), again };
}

/** The agent reports digests of blocks at both ends of the disk, and of other blocks at equal distances. */
function chosenPrints<T extends { readonly block: number }>(held: readonly T[], blocks: number): T[] {
  const isEnd = ({ block }: T): boolean => block < END_BLOCKS || block >= blocks - END_BLOCKS;
  const ends = held.filter(isEnd);
  const others = held.filter((one) => !isEnd(one));
  const room = Math.min(others.length, MOST_PRINTS - ends.length);
  const spread = Array.from({ length: room }, (_, index) => others[Math.floor((index * others.length) / room)]);
  return [...ends, ...spread.flatMap((one) => one ?? [])];
}

export const blocksOf = ({ bytes }: Pick<BlockDevice, "bytes">): number => Math.floor(bytes / BLOCK_BYTES);
