import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, readFile, realpath, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { bytesOfName, textOfName } from "./byte-names.ts";
import { isMissing } from "./files.ts";

/**
 * A folder that was opened without following a symbolic link, and whose entries are reached through its descriptor. The descriptor of an `OpenFolder`
 * leads to the opened folder even if a tenant renames or replaces that folder.
 */
export class OpenFolder {
  readonly #handle: FileHandle;
  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /**
   * Opens a folder whose parent folder only root can change, for example `/home/ada` in `/home`. An operator may have put symbolic links into the
   * path of the parent folder, so the agent follows them. Returns null if nothing is at the path, and throws if the path is not a folder.
   */
  static async at(root: string, path: string): Promise<OpenFolder | null> {
    const real = await realParent(root, path);
    return real === null ? null : OpenFolder.#open(bytesOfName(join(real, basename(path))));
  }

  static async #open(path: string | Buffer): Promise<OpenFolder | null> {
    try {
      return new OpenFolder(await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  /** Returns the path of an entry of a folder, which the kernel resolves from the folder's descriptor. */
  entry(name: string | Buffer): Buffer {
    const bytes = typeof name === "string" ? Buffer.from(name) : name;
    if (bytes.length === 0 || bytes.includes(0x2f) || bytes.equals(DOT) || bytes.equals(DOT_DOT))
      throw new Error("A name in a folder must not lead out of the folder.");
    return Buffer.concat([Buffer.from(`/proc/self/fd/${this.#handle.fd}/`), bytes]);
  }
  /** Returns the path by which another process, such as a tool, reaches a folder or one of its entries. */
  pathForTools(name: Buffer | null): Buffer {
    return Buffer.concat([Buffer.from(`/proc/${process.pid}/fd/${this.#handle.fd}/`), name ?? DOT]);
  }
  get self(): string {
    return `/proc/self/fd/${this.#handle.fd}`;
  }

  open(name: string | Buffer): Promise<OpenFolder | null> {
    return OpenFolder.#open(this.entry(name));
  }
  stat(): Promise<Stats> {
    return this.#handle.stat();
  }
  sync(): Promise<void> {
    return this.#handle.sync();
  }
  close(): Promise<void> {
    return this.#handle.close();
  }

  /** A bind mount has its own mount number, although its device number is that of the original mount. */
  async mountId(): Promise<string> {
    const info = await readFile(`/proc/self/fdinfo/${this.#handle.fd}`, "utf8");
    const id = /^mnt_id:\s*([0-9]+)$/m.exec(info)?.[1];
    if (id === undefined) throw new Error("The kernel does not name the mount of an open folder.");
    return id;
  }
}

const DOT = Buffer.from(".");
const DOT_DOT = Buffer.from("..");

/** Returns the real path of a path's parent, or null if the parent is missing. */
export async function realParent(root: string, path: string): Promise<string | null> {
  let parent: string;
  try {
    parent = textOfName(await realpath(bytesOfName(join(root, dirname(path))), { encoding: "buffer" }));
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  const realRoot = await realpath(root);
  if (!`${parent}/`.startsWith(realRoot === "/" ? "/" : `${realRoot}/`))
    throw new Error(`${path} does not lie below ${root}.`);
  return parent;
}

/** The kind, owner and mode of an entry that is a symbolic link are those of the link itself. */
export interface Entry {
  readonly kind: "file" | "folder" | "other";
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}
export async function entryAt(root: string, path: string): Promise<Entry | null> {
  try {
    const { uid, gid, mode, ...found } = await lstat(bytesOfName(join(root, path))).then((stats) => ({
      uid: stats.uid,
      gid: stats.gid,
      mode: stats.mode & 0o7777,
      isFile: stats.isFile(),
      isFolder: stats.isDirectory(),
    }));
    return { kind: found.isFile ? "file" : found.isFolder ? "folder" : "other", uid, gid, mode };
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

export interface OwnedFile {
  /** Only root can change the parent folder of a user's home folder. */
  readonly home: string;
  readonly folder: string;
  readonly name: string;
  readonly text: string;
  readonly uid: number;
  readonly gid: number;
}

/**
 * Writes a file with mode 0600 into a folder of a user's home, which the user may change at the same time. The agent opens the user's home and the
 * folder in it without following symbolic links, and both must belong to the user. The written file replaces whatever has its name, even a symbolic
 * link.
 */
export async function writeOwned(root: string, file: OwnedFile): Promise<void> {
  const { home, folder, uid, gid } = file;
  const opened = await ownFolder(await OpenFolder.at(root, home), home, uid);
  try {
    await mkdir(opened.entry(folder), 0o700).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    });
    const inner = await opened.open(folder);
    if (inner === null) throw new Error(`${home}/${folder} was removed meanwhile.`);
    try {
      const stats = await inner.stat();
      // An empty folder in a user's home that belongs to root was made just now, or by an agent that was killed before it gave the folder to the
      // user.
      if (stats.uid === 0 && (await readdir(inner.self)).length === 0) await handOver(inner, uid, gid);
      else if (stats.uid !== uid) throw new Error(`${home}/${folder} belongs to uid ${stats.uid} and not to ${uid}.`);
      await replaceFile(inner, file);
    } finally {
      await inner.close();
    }
  } finally {
    await opened.close();
  }
}

async function ownFolder(folder: OpenFolder | null, path: string, uid: number): Promise<OpenFolder> {
  if (folder === null) throw new Error(`There is no ${path}.`);
  const owner = (await folder.stat()).uid;
  if (owner === uid) return folder;
  await folder.close();
  throw new Error(`${path} belongs to uid ${owner} and not to ${uid}.`);
}

async function handOver(folder: OpenFolder, uid: number, gid: number): Promise<void> {
  const handle = await open(folder.self, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.chmod(0o700);
    await handle.chown(uid, gid);
  } finally {
    await handle.close();
  }
}

async function replaceFile(folder: OpenFolder, { name, text, uid, gid }: OwnedFile): Promise<void> {
  // The temporary file has a fixed name, so that the next write replaces the temporary file of a killed agent.
  const temporary = folder.entry(`.${name}.muster`);
  await unlink(temporary).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(temporary, flags, 0o600);
  try {
    await handle.writeFile(text);
    await handle.chmod(0o600);
    await handle.chown(uid, gid);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, folder.entry(name));
  await folder.sync();
}
