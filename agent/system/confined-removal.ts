import { randomBytes } from "node:crypto";
import { lstat, opendir, rename, rmdir, unlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { bytesOfName, textOfName } from "./byte-names.ts";
import { OpenFolder, realParent } from "./confined.ts";
import { isMissing } from "./files.ts";
import { readMounts } from "./mounts.ts";

export interface Removal {
  readonly removed: number;
  readonly unlocked: number;
  /** `left` names only the first paths that the removal left, while `leftCount` counts all of them. */
  readonly left: readonly { readonly path: string; readonly reason: string }[];
  readonly leftCount: number;
}

export interface RemovalLimits {
  readonly signal: AbortSignal;
  /** The time when the removal of a folder tree gives up, as a value of `performance.now()`. */
  readonly deadline: number;
  /**
   * The uid of a file's or folder's owner decides whether the agent may remove the file or folder. If the caller passes no function `mayRemove`, the
   * agent may remove the files and folders of every owner.
   */
  readonly mayRemove?: (uid: number) => boolean;
  readonly onProgress: (removed: number) => void;
}

/** Clears the flags "immutable" and "append only" of the listed paths, each of which ends with a zero byte. */
export type UnlockPaths = (paths: Buffer) => Promise<void>;

const MOST_NAMED = 20;
const MOST_LEFT = 10_000;
/**
 * The depth of a folder tree beyond which the removal of the tree moves a folder to the top of the tree before it empties the folder. Because the
 * removal of a folder tree moves deep folders upwards, it needs neither a deep recursion nor many descriptors.
 */
const DEEPEST = 64;
const PROGRESS_EVERY = 500;
const ENTRIES_UNLOCKED_AT_ONCE = 500;

/**
 * File names are bytes, because a file name need not be UTF-8. The removal of a folder tree follows no symbolic link and enters no mount, and its
 * result names a mount that stays. If flags such as "immutable" prevent a removal, `removeConfined` clears the flags first.
 */
export async function removeConfined(
  root: string,
  path: string,
  limits: RemovalLimits,
  unlock: UnlockPaths,
): Promise<Removal> {
  const parent = await realParent(root, path);
  if (parent === null) return { removed: 0, unlocked: 0, left: [], leftCount: 0 };
  const folder = await OpenFolder.at("/", parent === "/" ? "/." : parent);
  if (folder === null) return { removed: 0, unlocked: 0, left: [], leftCount: 0 };
  try {
    const mounts = new Map((await readMounts("/")).map((mount) => [mount.path, mount.type]));
    const run = new ConfinedRemoval(limits, unlock, mounts, await folder.mountId());
    const name = bytesOfName(basename(path));
    // The check of an entry's owner and the entry's removal go through one descriptor, so they concern the same entry.
    if (limits.mayRemove !== undefined && !(await isAllowed(folder.entry(name), limits.mayRemove)))
      return { removed: 0, unlocked: 0, left: [], leftCount: 0 };
    const real = bytesOfName(join(parent, basename(path))).toString("latin1");
    await run.removeEntry(folder, name, real, 0);
    return run.result();
  } finally {
    await folder.close();
  }
}

class ConfinedRemoval {
  #removed = 0;
  #unlocked = 0;
  readonly #left = new Map<string, string>();
  /** The top folder of the tree that the agent removes, into which it moves deep folders before it empties them. */
  #top: { folder: OpenFolder; path: string } | null = null;
  /** How many deep folders the removal of a folder tree has moved into the top folder, so that it must read the top folder once more. */
  #moved = 0;
  readonly #limits: RemovalLimits;
  readonly #unlock: UnlockPaths;
  readonly #mounts: ReadonlyMap<string, string>;
  readonly #mountId: string;
  constructor(limits: RemovalLimits, unlock: UnlockPaths, mounts: ReadonlyMap<string, string>, mountId: string) {
    this.#limits = limits;
    this.#unlock = unlock;
    this.#mounts = mounts;
    this.#mountId = mountId;
  }

  result(): Removal {
    const left = [...this.#left].slice(0, MOST_NAMED).map(([path, reason]) => ({ path: textOf(path), reason }));
    return { removed: this.#removed, unlocked: this.#unlocked, left, leftCount: this.#left.size };
  }

  async removeEntry(folder: OpenFolder, name: Buffer, path: string, depth: number): Promise<boolean> {
    this.#limits.signal.throwIfAborted();
    if (performance.now() > this.#limits.deadline) return this.#leave(path, "the time for the removal is over");
    const mount = this.#mounts.get(path);
    if (mount !== undefined) return this.#leave(path, `a file system of type ${mount} is mounted there`);
    const entry = folder.entry(name);
    let code = await failureOf(unlink(entry));
    if (code === "EPERM") {
      await this.#unlockAt(folder, [name]);
      code = await failureOf(unlink(entry));
    }
    if (code === "EISDIR") return this.#removeFolder(folder, name, path, depth);
    return this.#count(code, path);
  }

  async #removeFolder(parent: OpenFolder, name: Buffer, path: string, depth: number): Promise<boolean> {
    if (depth >= DEEPEST && this.#top !== null) return this.#moveUp(parent, name, path);
    const folder = await parent.open(name);
    if (folder === null) return true;
    try {
      // If somebody mounted a file system on the folder after the agent read the list of mounts, the folder's mount has another number than the top
      // folder's mount.
      if ((await folder.mountId()) !== this.#mountId) return this.#leave(path, "another file system is mounted there");
      const isTop = this.#top === null;
      if (isTop) this.#top = { folder, path };
      await this.#empty(folder, path, depth);
      if (isTop) await this.#emptyMoved(folder, path, depth);
    } finally {
      await folder.close();
    }
    let code = await failureOf(rmdir(parent.entry(name)));
    if (code === "EPERM") {
      await this.#unlockAt(parent, [name]);
      code = await failureOf(rmdir(parent.entry(name)));
    }
    // If a folder cannot be removed because it is not empty, `#left` already names the entries that could not be removed.
    return code === "ENOTEMPTY" && this.#left.size > 0 ? false : this.#count(code, path);
  }

  async #empty(folder: OpenFolder, path: string, depth: number): Promise<void> {
    // A read of a folder may miss entries while entries are removed, so `#empty` reads the folder until nothing more is removed.
    for (let removedSome = true; removedSome; ) {
      removedSome = false;
      const refused: Refused[] = [];
      for await (const entry of await opendir(folder.self, { encoding: "buffer", bufferSize: 256 } as never)) {
        const name = entry.name as unknown as Buffer;
        if (this.#left.has(innerPath(path, name))) continue;
        const code = await failureOf(unlink(folder.entry(name)));
        if (code === null) {
          this.#tick();
          removedSome = true;
        } else refused.push({ name, code });
        if (refused.length >= ENTRIES_UNLOCKED_AT_ONCE) break;
        this.#limits.signal.throwIfAborted();
        if (performance.now() > this.#limits.deadline) break;
      }
      if (await this.#removeRefused(folder, path, depth, refused)) removedSome = true;
      if (performance.now() > this.#limits.deadline) return;
    }
  }

  async #removeRefused(folder: OpenFolder, path: string, depth: number, refused: readonly Refused[]): Promise<boolean> {
    const locked = refused.filter(({ code }) => code === "EPERM").map(({ name }) => name);
    if (locked.length > 0) await this.#unlockAt(folder, locked);
    let removedSome = false;
    for (const { name } of refused)
      if (await this.removeEntry(folder, name, innerPath(path, name), depth + 1)) removedSome = true;
    return removedSome;
  }

  /** Moves a deep folder into the top folder of the tree that the agent removes, where a later read of the top folder empties it. */
  async #moveUp(parent: OpenFolder, name: Buffer, path: string): Promise<boolean> {
    const top = this.#top;
    if (top === null) return this.#leave(path, "the folder is too deep");
    const target = top.folder.entry(`.muster-removed-${randomBytes(8).toString("hex")}`);
    let code = await failureOf(rename(parent.entry(name), target));
    if (code === "EPERM") {
      await this.#unlockAt(parent, [name]);
      code = await failureOf(rename(parent.entry(name), target));
    }
    if (code !== null) return this.#leave(path, `the folder is too deep and could not be moved (${code})`);
    this.#moved += 1;
    return true;
  }

  async #emptyMoved(folder: OpenFolder, path: string, depth: number): Promise<void> {
    for (let moved = 0; moved !== this.#moved && performance.now() <= this.#limits.deadline; ) {
      moved = this.#moved;
      await this.#empty(folder, path, depth);
    }
  }

  async #unlockAt(folder: OpenFolder, names: readonly Buffer[]): Promise<void> {
    this.#unlocked += 1;
    const paths = [null, ...names].flatMap((name) => [folder.pathForTools(name), Buffer.from([0])]);
    await this.#unlock(Buffer.concat(paths));
  }

  #count(code: string | null, path: string): boolean {
    if (code === "ENOENT") return true;
    if (code === null) {
      this.#tick();
      return true;
    }
    return this.#leave(
      path,
      code === "EBUSY" ? "something is mounted there (EBUSY)" : `it could not be removed (${code})`,
    );
  }

  #tick(): void {
    this.#removed += 1;
    if (this.#removed % PROGRESS_EVERY === 0) this.#limits.onProgress(this.#removed);
  }

  #leave(path: string, reason: string): false {
    if (this.#left.size < MOST_LEFT) this.#left.set(path, reason);
    return false;
  }
}

async function isAllowed(entry: Buffer, mayRemove: (uid: number) => boolean): Promise<boolean> {
  try {
    return mayRemove((await lstat(entry)).uid);
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

interface Refused {
  readonly name: Buffer;
  readonly code: string;
}
const innerPath = (path: string, name: Buffer): string => `${path}/${name.toString("latin1")}`;
const textOf = (path: string): string => textOfName(Buffer.from(path, "latin1"));

async function failureOf(operation: Promise<void>): Promise<string | null> {
  try {
    await operation;
    return null;
  } catch (error) {
    if (isMissing(error)) return "ENOENT";
    if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
    throw error;
  }
}
