import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { BlockDevice, DiskPicture } from "../../storage/disk-rules.ts";
import { BLOCK_BYTES } from "../../storage/purge-sample.ts";
import { deviceNumber, walkDiskHolders } from "../device-holders.ts";
import { codeOf } from "./descriptors.ts";

const { O_RDONLY, O_RDWR, O_EXCL, O_DIRECT, O_NOFOLLOW, O_NONBLOCK } = constants;

/** The agent tries several times to claim a disk (open it exclusively), because udev opens a disk for a moment after each change. */
const TRIES = 4;
const TRY_EVERY_MS = 500;

export type Claim = { readonly ok: true; release(): void } | { readonly ok: false; readonly detail: string };

/**
 * A claim opens a disk exclusively for the present process, until the process calls `release`. While a process holds the claim of a disk (O_EXCL),
 * the kernel refuses mounts, swap, RAID, encryption and pools on the disk. A claim (exclusive open) of a disk prevents neither loop devices and
 * exports on the disk (`readDiskUsers`) nor processes that merely have the disk open. `claimDisk` also looks for processes that have the disk open,
 * because a claim (exclusive open) of the disk does not prevent them.
 */
export async function claimDisk(root: string, device: BlockDevice, picture: DiskPicture): Promise<Claim> {
  let last: Claim = { ok: false, detail: `${device.name} was not tried.` };
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (tries > 0) await sleep(TRY_EVERY_MS);
    last = claimOnce(root, device, picture);
    if (last.ok) return last;
  }
  return last;
}

function claimOnce(root: string, device: BlockDevice, picture: DiskPicture): Claim {
  let fd: number;
  try {
    // When a process closes a disk that it had opened for writing, udev reads the disk's partition table once more.
    fd = openSync(join(root, "dev", device.name), O_RDWR | O_EXCL | O_NOFOLLOW);
  } catch (error) {
    return { ok: false, detail: `/dev/${device.name} cannot be opened for this process alone: ${codeOf(error)}.` };
  }
  const refuse = (detail: string): Claim => {
    closeSync(fd);
    return { ok: false, detail };
  };
  const stat = fstatSync(fd);
  if (!stat.isBlockDevice() || deviceNumber(stat) !== device.number)
    return refuse(`/dev/${device.name} is not the block device ${device.number}.`);
  const users = openedBy(root, device, picture);
  if (users !== null) return refuse(users);
  return { ok: true, release: () => closeSync(fd) };
}

/**
 * Names the other processes that have the disk, its partitions or its character devices open; null if there are none. A process can send commands to
 * a disk's character device even while another process has claimed the disk (O_EXCL).
 */
function openedBy(root: string, device: BlockDevice, picture: DiskPicture): string | null {
  const parts = picture.devices.filter(({ partitionOf }) => partitionOf === device.name);
  const walk = walkDiskHolders(root, {
    blocks: new Set([device, ...parts].map(({ number }) => number)),
    characters: new Set(device.characters),
  });
  if (walk.unreadable.length > 0)
    return `The open files of the processes ${walk.unreadable.slice(0, 5).join(", ")} cannot be read.`;
  const others = walk.holders.filter(({ pid }) => pid !== process.pid);
  const named = others.slice(0, 5).map(({ name, pid }) => `${name} (${pid})`);
  return named.length === 0 ? null : `The processes ${named.join(", ")} have ${device.name} open. End them first.`;
}

/**
 * After the agent has written markers into blocks of the disk, it looks once more for other processes that have the disk open. Udev opens the disk
 * for a moment after the agent has written to it, so the agent checks several times whether another process has the disk open.
 */
export async function stillOpenedBy(root: string, device: BlockDevice, picture: DiskPicture): Promise<string | null> {
  let users: string | null = null;
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (tries > 0) await sleep(TRY_EVERY_MS);
    users = openedBy(root, device, picture);
    if (users === null) return null;
  }
  return users;
}

/** A block device that the agent holds open, so that Linux gives its device number to no other device. */
export interface HeldDevice {
  /** The path by which a tool opens the device that the agent holds open, even if the device's name leads to another device now. */
  readonly path: string;
  close(): void;
}

/**
 * Opens a block device and keeps it open; returns null if the name does not lead to the device with the given number. Linux gives the number of an
 * open device to no other device, even if somebody pulls the disk out of the host. The agent opens the device without O_EXCL, because `mkfs` opens
 * the device with O_EXCL itself, and the kernel refuses a second exclusive open.
 */
export function holdDevice(root: string, { name, number }: Pick<BlockDevice, "name" | "number">): HeldDevice | null {
  const fd = openSync(join(root, "dev", name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const stat = fstatSync(fd);
  if (stat.isBlockDevice() && deviceNumber(stat) === number)
    return { path: `/proc/${process.pid}/fd/${fd}`, close: () => closeSync(fd) };
  closeSync(fd);
  return null;
}

/** Reads and writes blocks past the page cache, so that a read shows what the disk itself returns. */
export interface DirectDisk {
  /** The returned bytes stay valid until the next read; null means that the disk cannot read the block. */
  read(block: number): Buffer | null;
  write(block: number, bytes: Buffer): void;
  flush(): void;
  close(): void;
}

const READ_ERRORS = ["EIO", "ENODATA", "EILSEQ", "EREMOTEIO", "ENXIO", "EBADE", "ENOSPC", "EOPNOTSUPP"];

/**
 * For reads and writes past the page cache (O_DIRECT), Linux wants a buffer at an aligned address. In Node.js, only an ArrayBuffer that can grow
 * begins at the address of a page.
 */
export function openDirect(root: string, name: string, use: "read" | "write"): DirectDisk {
  const fd = openSync(join(root, "dev", name), (use === "read" ? O_RDONLY : O_RDWR) | O_DIRECT | O_NOFOLLOW);
  const buffer = Buffer.from(new ArrayBuffer(BLOCK_BYTES, { maxByteLength: 2 * BLOCK_BYTES }), 0, BLOCK_BYTES);
  return {
    read: (block) => {
      try {
        return readSync(fd, buffer, 0, BLOCK_BYTES, block * BLOCK_BYTES) === BLOCK_BYTES ? buffer : null;
      } catch (error) {
        if (READ_ERRORS.includes(codeOf(error))) return null;
        throw error;
      }
    },
    write: (block, bytes) => {
      bytes.copy(buffer);
      const written = writeSync(fd, buffer, 0, BLOCK_BYTES, block * BLOCK_BYTES);
      if (written !== BLOCK_BYTES) throw new Error(`only ${written} bytes of block ${block} were written`);
    },
    flush: () => fsyncSync(fd),
    close: () => closeSync(fd),
  };
}
