import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { join } from "node:path";
import { MOST_ENTRIES, type ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { bytesOfName } from "../byte-names.ts";
import { isMissing } from "../files.ts";
import type { Mount } from "../mounts.ts";
import { foreignMountOf, ownMounts } from "./foreign-mounts.ts";
import { listFolder, type Reading, Unreadable, valued } from "./reading.ts";

/** The size, in bytes, of the largest file whose content the agent hashes for the residue snapshot. An initrd has a few hundred megabytes. */
const MAX_FILE_BYTES = 2 * 1024 ** 3;
const CHUNK = 1024 * 1024;

export interface Tree {
  readonly path: string;
  /**
   * How many levels of folders get one entry of the residue snapshot for each file; by default all levels do. A folder that lies deeper than `depth`
   * becomes one entry of the residue snapshot, with all its content.
   */
  readonly depth?: number;
  /** Matches files that the system itself changes, which get no entry in the residue snapshot. */
  readonly except?: RegExp;
}

/** Reads mode, owner and content of each file, the target of each symbolic link, and mode and owner of each folder. */
export async function readTrees(reading: Reading, trees: readonly Tree[]): Promise<ResidueEntry[]> {
  const mounts = await ownMounts(reading);
  const entries: ResidueEntry[] = [];
  for (const tree of trees) {
    for await (const { path, value } of thingsOf(
      reading,
      mounts,
      tree,
      tree.path,
      tree.depth ?? Number.POSITIVE_INFINITY,
    )) {
      entries.push(valued(reading, path, value));
      if (entries.length > MOST_ENTRIES) throw new Unreadable(`${tree.path} has too many files to list.`);
    }
  }
  return entries;
}

interface Thing {
  readonly path: string;
  readonly value: string;
}

async function* thingsOf(
  reading: Reading,
  mounts: readonly Mount[],
  tree: Tree,
  path: string,
  depth: number,
): AsyncGenerator<Thing> {
  reading.signal.throwIfAborted();
  const foreign = foreignMountOf(mounts, path);
  if (foreign !== null) {
    yield { path, value: `on a ${foreign.type} mount, not read` };
    return;
  }
  const value = await describeFile(join(reading.root, path));
  if (value === null) return;
  if (!value.startsWith("folder ")) {
    yield { path, value };
    return;
  }
  const inside: Thing[] = [];
  for (const name of await listFolder(join(reading.root, path))) {
    if (tree.except?.test(name) === true) continue;
    for await (const thing of thingsOf(reading, mounts, tree, `${path}/${name}`, depth - 1)) {
      if (depth > 0) yield thing;
      else inside.push(thing);
    }
  }
  if (depth > 0) yield { path: `${path}/`, value };
  else yield { path: `${path}/**`, value: JSON.stringify([value, inside]) };
}

/** Describes a file by kind, mode, owner, and content or target, or returns null if the file is missing. */
export async function describeFile(path: string): Promise<string | null> {
  const file = bytesOfName(path);
  try {
    const stats = await lstat(file);
    const rights = `${(stats.mode & 0o7777).toString(8)} ${stats.uid}:${stats.gid}`;
    if (stats.isSymbolicLink()) return `link ${await readlink(file)}`;
    if (stats.isDirectory()) return `folder ${rights}`;
    if (!stats.isFile()) return `special ${(stats.mode & 0o170000).toString(8)} ${rights} ${stats.rdev}`;
    if (stats.size > MAX_FILE_BYTES)
      throw new Unreadable(`${path} has ${stats.size} bytes, which is too much to read.`);
    return `file ${rights} ${await hashFile(file)}`;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** `hashFile` opens a file so that it follows no symbolic link, and does not wait if a pipe has replaced the file. */
async function hashFile(file: Buffer): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const hash = createHash("sha256");
    const chunk = Buffer.allocUnsafe(CHUNK);
    for (;;) {
      const { bytesRead } = await handle.read(chunk, 0, CHUNK, null);
      if (bytesRead === 0) return hash.digest("base64url");
      hash.update(chunk.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}
