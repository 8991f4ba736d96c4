import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";

/**
 * Node.js has no call that opens a name in an open folder (openat), so the agent uses a path through the folder's descriptor in /proc/self/fd. Linux
 * resolves a descriptor to the folder that was opened, even if a process has moved or replaced the folder.
 */
export const entryPath = (folder: number, name: Buffer): Buffer => Buffer.concat([prefixOf(folder), name]);

const PREFIXES: Buffer[] = [];
function prefixOf(folder: number): Buffer {
  PREFIXES[folder] ??= Buffer.from(`/proc/self/fd/${folder}/`);
  return PREFIXES[folder];
}

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
/**
 * With O_PATH, Linux opens a descriptor that only names a folder, without asking its file system, which may hang. Node.js has no constant for O_PATH.
 */
const O_PATH = 0o10000000;
const HERE = Buffer.from(".");
const ABOVE = Buffer.from("..");

export interface FolderIdentity {
  readonly device: bigint;
  readonly inode: bigint;
  /** The kernel's number of the mount through which the folder was opened, which differs between two bind mounts. */
  readonly mount: string;
}

export interface OpenFolder extends FolderIdentity {
  readonly fd: number;
}

export const isSameFolder = (one: FolderIdentity, other: FolderIdentity): boolean =>
  one.device === other.device && one.inode === other.inode && one.mount === other.mount;

export function codeOf(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  throw error;
}

/**
 * Returns the kernel's number of the mount to which an open descriptor belongs. The kernel tells the mount of a descriptor without asking the file
 * system, which may hang.
 */
function mountOf(fd: number): string {
  const mount = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1];
  if (mount === undefined) throw new Error("Linux does not tell the mount of an open folder (/proc/self/fdinfo).");
  return mount;
}

/** Opens a descriptor that only names a file or folder, without asking its file system, and returns it with the kernel's number of its mount. */
export function openNamed(path: string): { readonly fd: number; readonly mount: string } {
  const fd = openSync(path, O_PATH);
  try {
    return { fd, mount: mountOf(fd) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

export class OtherMount extends Error {
  override readonly name = "OtherMount";
}

/**
 * Opens a folder in a folder without following a symbolic link. If the name leads to a mount other than `mount`, `openFolderIn` throws `OtherMount`
 * before it asks that other mount's file system.
 */
export function openFolderIn(parent: number, name: Buffer, mount?: string): OpenFolder {
  const named = openSync(entryPath(parent, name), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  try {
    const at = mountOf(named);
    if (mount !== undefined && at !== mount) throw new OtherMount(`It is on mount ${at} and not on mount ${mount}.`);
    return identified(openSync(entryPath(named, HERE), O_RDONLY | O_DIRECTORY), at);
  } finally {
    closeSync(named);
  }
}

function identified(fd: number, mount: string): OpenFolder {
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return { fd, device: dev, inode: ino, mount };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

export const openParentOf = (folder: OpenFolder): OpenFolder => openFolderIn(folder.fd, ABOVE, folder.mount);

/**
 * Opens a folder by its path below `root`, one path component after the other. `openFolderBelow` refuses a symbolic link anywhere in the path,
 * because the link's maker would choose the folder.
 */
export function openFolderBelow(root: string, path: string): OpenFolder {
  let fd = openSync(root, O_RDONLY | O_DIRECTORY);
  let folder = identified(fd, mountOf(fd));
  for (const name of path.split("/").filter((part) => part !== "")) {
    try {
      folder = openFolderIn(fd, Buffer.from(name));
    } finally {
      closeSync(fd);
    }
    fd = folder.fd;
  }
  return folder;
}
