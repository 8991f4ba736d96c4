import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  chmod,
  mkdir,
  open,
  opendir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  statfs,
  unlink,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { bytesOfName, textOfName } from "./byte-names.ts";

export const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT";

export const readTextNow = (file: string): string => readFileSync(file, "utf8");

export async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Replaces a file completely or not at all: temporary file, fsync, rename, fsync of the folder. The temporary file gets its mode before its text. */
export async function writeAtomically(file: string, text: string, mode: number): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true });
  const temporary = join(folder, `.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const handle = await open(temporary, "wx", mode);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await chmod(temporary, mode);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  const handle = await open(folder, "r");
  await handle.sync().finally(() => handle.close());
}

export async function removeFile(file: string): Promise<void> {
  await unlink(bytesOfName(file)).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
}

/** Renames a file inside a folder, and returns when the new name is on disk. */
export async function renameFile(from: string, to: string): Promise<void> {
  await rename(from, to);
  const handle = await open(dirname(to), "r");
  await handle.sync().finally(() => handle.close());
}

/**
 * Removes a file or folder below the host's root. If the path is a symbolic link, only the link is removed. `removeTree` refuses a path that leads
 * out of the host's root.
 */
export async function removeTree(root: string, path: string): Promise<void> {
  const folder = dirname(path);
  if (!(await isPresent(folder))) return;
  const [realRoot, realFolder] = await Promise.all([realpath(root), realpath(folder)]);
  if (realFolder === realRoot || !`${realFolder}/`.startsWith(realRoot === "/" ? "/" : `${realRoot}/`))
    throw new Error(`${path} does not lie below ${root} and is not removed.`);
  await rm(path, { recursive: true, force: true });
}

export async function isPresent(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    (error: unknown) => {
      if (isMissing(error)) return false;
      throw error;
    },
  );
}

/** Returns the sorted names in a folder. `textOfName` turns each name into a text, also a name whose bytes are not UTF-8. */
export async function listFolder(folder: string): Promise<string[]> {
  try {
    return (await readdir(bytesOfName(folder), { encoding: "buffer" })).map(textOfName).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** With the encoding `buffer`, `opendir` returns the names in a folder as bytes, although the types of Node.js do not say so. */
const BUFFERS = { bufferSize: 512, encoding: "buffer" } as never;

/** Returns the names of at most `most` entries of a folder, in the disk's order, and none for a missing folder. */
export async function listSome(folder: string, most: number): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const { name } of await opendir(bytesOfName(folder), BUFFERS)) {
      if (names.length >= most) break;
      names.push(textOfName(name as unknown as Buffer));
    }
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  return names;
}

/** How many bytes and inodes the file system of a folder has, how many bytes ordinary users may still write, and how many inodes are free. */
export async function roomOf(
  folder: string,
): Promise<{ readonly bytes: number; readonly freeBytes: number; readonly files: number; readonly freeFiles: number }> {
  const fs = await statfs(folder);
  return { bytes: fs.blocks * fs.bsize, freeBytes: fs.bavail * fs.bsize, files: fs.files, freeFiles: fs.ffree };
}

/** Returns the bytes that ordinary users may still write to the file system of `folder`. */
export async function freeBytes(folder: string): Promise<number> {
  const fs = await statfs(folder);
  return fs.bavail * fs.bsize;
}
