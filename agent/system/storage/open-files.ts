import { closeSync, fstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { descriptorsOf } from "../descriptor-tables.ts";
import { parseMounts } from "../mounts.ts";
import { codeOf, openNamed } from "./descriptors.ts";

/** A process may use a file or folder by a descriptor, as its working folder or root, or as a mapping into its memory. */
export interface OpenFile {
  readonly pid: number;
  /**
   * The kind of use is a name in the process's folder of /proc: `fd/` with a descriptor's number (`task/<tid>/fd/` for a descriptor that only one
   * thread has), `cwd`, `root`, or the addresses of a mapping.
   */
  readonly use: string;
  /** The path of the file, or `LONG_PATH`. */
  readonly path: string;
  /**
   * True if the file in use has no name any more. The content of a file without a name stays on the disk until the last process that uses the file
   * closes it.
   */
  readonly isDeleted: boolean;
}

export interface OpenFiles {
  readonly files: readonly OpenFile[];
  readonly unreadable: number;
}

/** The process with pid 1 never belongs to a tenant. In some containers, nobody may read the files of process 1. */
const INIT = "1";
const DELETED = " (deleted)";
/**
 * Stands for a path of more than 4,095 bytes, which no link in /proc can show (ENAMETOOLONG). Every user of the host can hold open a file or folder
 * whose path has more than 4,095 bytes.
 */
export const LONG_PATH = "a path of more than 4,095 bytes";

/**
 * `openFilesBelow` lists the files below a folder, and the folder itself, that other processes use. `openFilesBelow` reads only links in /proc, never
 * the files, so a hanging file system cannot block it. A file with a path of more than 4,095 bytes counts as below the folder `folder` if the file is
 * on this folder's file system, or if the file's file system is unknown.
 */
export function openFilesBelow(folder: string): OpenFiles {
  const files: OpenFile[] = [];
  let unreadable = 0;
  const device = deviceOf(folder);
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one) && Number(one) !== process.pid)) {
    const uses = usesOf(name);
    if (uses === null && name !== INIT) unreadable += 1;
    for (const [use, target] of uses ?? []) {
      const pid = Number(name);
      if (target === LONG_PATH) {
        files.push(...longUse(pid, use, device));
        continue;
      }
      const isDeleted = target.endsWith(DELETED);
      const path = isDeleted ? target.slice(0, -DELETED.length) : target;
      if (path === folder || path.startsWith(`${folder}/`)) files.push({ pid, use, path, isDeleted });
    }
  }
  return { files, unreadable };
}

/** The device number of the file system that contains a folder, or null if it cannot be told. */
function deviceOf(folder: string): string | null {
  try {
    const { fd, mount } = openNamed(folder);
    closeSync(fd);
    return deviceOfMount("self", mount);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

const deviceOfMount = (pid: string, mount: string): string | null =>
  parseMounts(readFileSync(join("/proc", pid, "mountinfo"), "latin1")).find(({ id }) => id === mount)?.device ?? null;

/**
 * Returns one use of a file whose path is longer than 4,095 bytes if the file is on the file system `device`, or if the file's file system is
 * unknown.
 */
function longUse(pid: number, use: string, device: string | null): OpenFile[] {
  try {
    const { fd, mount } = openNamed(join("/proc", String(pid), use));
    try {
      const at = deviceOfMount(String(pid), mount);
      if (at !== null && device !== null && at !== device) return [];
      // `longUse` has already left out each file that is not on the folder's file system, so `fstatSync` reads no other file system, which may hang.
      return [{ pid, use, path: LONG_PATH, isDeleted: at !== null && device !== null && fstatSync(fd).nlink === 0 }];
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    const code = codeOf(error);
    // The process has ended, or has closed the file. The list of mounts of a process that ends is unreadable (EINVAL).
    if (code === "ENOENT" || code === "ESRCH" || code === "EINVAL") return [];
    throw error;
  }
}

/** `usesOf` returns null if Linux does not let the agent read which files the process uses. */
function usesOf(pid: string): [string, string][] | null {
  const folder = join("/proc", pid);
  try {
    const links = [...descriptorsOf(folder, "path"), "cwd", "root"].flatMap((use): [string, string][] => {
      const target = targetOf(join(folder, use));
      return target === null ? [] : [[use, target]];
    });
    return [...links, ...mappedFiles(readFileSync(join(folder, "maps"), "latin1"))];
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ESRCH") return [];
    if (code === "EACCES" || code === "EPERM") return null;
    throw error;
  }
}

/**
 * Returns the target of a link in a process's /proc folder, or null if the descriptor or the process is gone. The links of a kernel thread in /proc
 * have no target.
 */
function targetOf(link: string): string | null {
  try {
    return readlinkSync(link);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    if (codeOf(error) === "ENAMETOOLONG") return LONG_PATH;
    throw error;
  }
}

const mappedFiles = (maps: string): [string, string][] =>
  maps.split("\n").flatMap((line): [string, string][] => {
    const [, addresses = "", path = ""] = /^(\S+) \S+ \S+ \S+ \d+ +(\/.*)$/.exec(line) ?? [];
    return path === "" ? [] : [[addresses, path]];
  });

export function newlyDeleted(before: readonly OpenFile[], after: readonly OpenFile[]): OpenFile[] {
  const keyOf = (file: OpenFile): string => `${file.pid} ${file.use} ${file.path}`;
  const known = new Set(before.filter((file) => file.isDeleted).map(keyOf));
  return after.filter((file) => file.isDeleted && !known.has(keyOf(file)));
}

/** A Unix socket at which a process listens has its path in /proc/net/unix. */
export function listeningSockets(text: string): ReadonlySet<string> {
  const LISTENS = 0x10000;
  return new Set(
    text.split("\n").flatMap((line) => {
      const [, , , flags = "", , , , path] = line.trim().split(/\s+/);
      return path?.startsWith("/") === true && (Number.parseInt(flags, 16) & LISTENS) !== 0 ? [path] : [];
    }),
  );
}
