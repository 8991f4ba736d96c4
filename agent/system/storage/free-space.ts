import {
  closeSync,
  constants,
  fdatasyncSync,
  openSync,
  readdirSync,
  readFileSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { isMissing } from "../files.ts";
import { type Mount, parseMounts } from "../mounts.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { codeOf, entryPath, type OpenFolder, openFolderBelow } from "./descriptors.ts";
import type { StepEnd } from "./works.ts";

const GIB = 1024 ** 3;
const BLOCK_BYTES = 8 * 1024 * 1024;
/**
 * After how many written blocks, at most 32 MiB, the agent asks again how much space is free while it fills the free space with zeros. The space that
 * must stay free during the fill with zeros (`reserveOf`) is much larger than 32 MiB.
 */
const BLOCKS_BEFORE_QUESTION = 4;
/**
 * The largest number of files of zeros that the fill of free space makes. Each file of zeros, which fills free space, stays open until the end of the
 * cleaning step.
 */
const MOST_FILES = 256;
const SMALLEST_FILE_BYTES = GIB;
/** Linux's flag O_TMPFILE opens a file without a name, whose space the kernel frees when its last user closes it or ends. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;
const HERE = Buffer.from(".");

/**
 * The types of file systems on which a written zero reaches the disk. Some file systems keep files in memory, compress zeros, or store files on
 * another host, so zeros do not reach a disk.
 */
const ZEROS_REACH_THE_DISK = new Set(["ext2", "ext3", "ext4", "xfs"]);

/** Returns how many bytes of a file system stay free during the fill, so that the host's services can still write. */
export function reserveOf(totalBytes: number, isRoot: boolean): number {
  return isRoot ? Math.max(4 * GIB, totalBytes * 0.1) : Math.max(GIB, totalBytes * 0.02);
}

/** Overwrites with zeros the free space of the file system that contains a folder. */
export async function fillFreeSpaceStep(path: string, run: WorkRun, reserve = reserveOf): Promise<StepEnd> {
  let folder: OpenFolder;
  try {
    folder = openFolderBelow(run.root, path);
  } catch (error) {
    return { outcome: "failed", message: `The folder could not be opened: ${codeOf(error)}.`, evidence: {} };
  }
  try {
    const mounts = parseMounts(readFileSync("/proc/self/mountinfo", "latin1"));
    const mount = mounts.find(({ id }) => id === folder.mount);
    const refusal = refusalOf(mount);
    if (refusal !== null) return refusal;
    const isRoot = mounts.some((one) => one.path === "/" && one.device === mount?.device);
    return await fill(folder, path, run, (total) => reserve(total, isRoot));
  } finally {
    closeSync(folder.fd);
  }
}

function refusalOf(mount: Mount | undefined): StepEnd | null {
  if (mount === undefined)
    return { outcome: "failed", message: "The mount of the folder is not in the list of mounts.", evidence: {} };
  const evidence = { file_system: mount.type, device: mount.device };
  if (mount.type === "tmpfs")
    return { outcome: "skipped", message: "The folder is in memory and not on a disk.", evidence };
  if (!ZEROS_REACH_THE_DISK.has(mount.type))
    return { outcome: "unsupported", message: `Zeros written to ${mount.type} need not reach a disk.`, evidence };
  if (isThin(mount.device))
    return { outcome: "unsupported", message: "The disk is a thin volume, and zeros would fill its pool.", evidence };
  return null;
}

/** Whether a block device, or a device below it, takes its space from a thin pool. A fill of a volume's free space could fill its thin pool. */
export function isThin(device: string, sysfs = "/sys"): boolean {
  const folder = join(sysfs, "dev/block", device);
  if ((readIfPresent(join(folder, "dm/uuid")) ?? "").trim().endsWith("-tpool")) return true;
  return listIfPresent(join(folder, "slaves")).some((name) => {
    const below = readIfPresent(join(folder, "slaves", name, "dev"));
    return below !== null && isThin(below.trim(), sysfs);
  });
}

async function fill(
  folder: OpenFolder,
  path: string,
  run: WorkRun,
  reserve: (total: number) => number,
): Promise<StepEnd> {
  const target = `/proc/self/fd/${folder.fd}`;
  const free = (): number => {
    const { bavail, bsize } = statfsSync(target);
    return bavail * bsize;
  };
  const { blocks, bsize } = statfsSync(target);
  const [keep, freeBefore, began] = [reserve(blocks * bsize), free(), performance.now()];
  const files: number[] = [];
  let written = 0;
  try {
    const zeros = Buffer.alloc(BLOCK_BYTES);
    const fileBytes = Math.max(SMALLEST_FILE_BYTES, (blocks * bsize) / MOST_FILES);
    let inFile = Number.POSITIVE_INFINITY;
    for (let left = freeBefore - keep; left > 0; left = free() - keep)
      for (let block = 0; block < BLOCKS_BEFORE_QUESTION && left > 0; block += 1) {
        if (inFile >= fileBytes) {
          const last = files.at(-1);
          if (last !== undefined) fdatasyncSync(last);
          files.push(openSync(entryPath(folder.fd, HERE), O_TMPFILE | constants.O_WRONLY, 0o600));
          inFile = 0;
        }
        const count = writeSync(files.at(-1) ?? -1, zeros, 0, Math.min(BLOCK_BYTES, left));
        [written, inFile, left] = [written + count, inFile + count, left - count];
        await breathe();
        run.throwIfStopped();
        run.progress({ step: path.slice(0, 64), done: files.length, bytes: written });
      }
    const last = files.at(-1);
    if (last !== undefined) fdatasyncSync(last);
  } catch (error) {
    // Another program has filled the rest of the file system, so no free space is left to overwrite.
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  } finally {
    for (const file of files) closeSync(file);
  }
  const evidence = {
    bytes_written: written,
    bytes_free_before: freeBefore,
    bytes_reserved: Math.round(keep),
    seconds: Math.round((performance.now() - began) / 100) / 10,
  };
  return written === 0
    ? {
        outcome: "failed",
        message: "The free space is smaller than the reserve, so nothing was overwritten.",
        evidence,
      }
    : {
        outcome: "ok",
        message: `${written} of ${freeBefore} free bytes were overwritten; the rest is the reserve.`,
        // The fill of free space is at most a Clear of NIST SP 800-88, because the space that stays free and an SSD's spare area keep their content.
        evidence: { ...evidence, method: "clear", technique: "zeros written to free space" },
      };
}

function readIfPresent(file: string): string | null {
  try {
    return readFileSync(file, "latin1");
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function listIfPresent(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
