import { closeSync, type Dir, type Dirent, lstatSync, opendirSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { type ClearAttributes, MOST_INODES } from "./attributes.ts";
import {
  codeOf,
  entryPath,
  isSameFolder,
  type OpenFolder,
  OtherMount,
  openFolderIn,
  openParentOf,
} from "./descriptors.ts";
import { type EntryKind, type FolderUse, type Keep, keepAtTop, keepBelow, needsLook } from "./kept.ts";
import { forgetFailures, noteFailure, nothingRemoved, type Removed, removeFile, removeFolder } from "./removal.ts";

export interface EmptyOptions {
  readonly use: FolderUse;
  readonly path: string;
  /** The kernel's id of the present boot, without dashes. */
  readonly bootId: string;
  /** The paths of Unix sockets at which a running process listens. */
  readonly listening: ReadonlySet<string>;
  readonly clearAttributes: ClearAttributes;
  readonly reach: Reach;
  /** `emptyFolder` calls `look` about every 20 ms with the numbers of removed files and folders, and stops if `look` throws. */
  readonly look: (removed: Removed) => void;
}

/**
 * The two modes in which the functions that empty a folder name a file in an open folder. In the mode `descriptor`, the path of a file begins with
 * the open folder's descriptor in /proc/self/fd. In the mode `working_folder`, the open folder becomes the working folder of the process, which saves
 * a third of the time that the emptying takes. Only a program that does nothing else may use the mode `working_folder`, because a process has only
 * one working folder for all its threads.
 */
export type Reach = "descriptor" | "working_folder";

interface Frame {
  readonly name: Buffer;
  readonly keep: Keep;
  /** While the agent empties a deep folder, it closes the descriptors of the folders above, and later opens each again from its child. */
  open: OpenFolder;
  isOpen: boolean;
  readonly folders: Buffer[];
  mustLook: boolean;
  /** True if the folder contains more entries than the last read of the folder returned. */
  hasMore: boolean;
  /**
   * How many files and folders the agent had removed in all when it last read the folder. If nothing was removed since the last read, another read of
   * the folder would find the same entries.
   */
  removedAtLook: number;
  /** The count of failed removals at the time when the agent began to empty the folder. */
  readonly failuresBefore: number;
}

/** The largest number of folders that the agent keeps open while it empties a folder, because Linux limits a process's open files. */
const MOST_OPEN = 64;
/**
 * The largest number of names of subfolders that the agent keeps in memory while it empties a folder, over all levels of folders. Even if MOST_NAMES
 * is reached, each level of folders may hold LEAST_NAMES names, so that the emptying of the folder goes on.
 */
const MOST_NAMES = 100_000;
const LEAST_NAMES = 16;
/**
 * The largest number of times that the agent goes through a folder tree from the top to empty it. If other processes moved or filled folders while
 * the agent emptied a folder tree, the agent goes through the folder tree once more.
 */
const MOST_ROUNDS = 5;
const BREATHE_EVERY_MS = 20;
const HERE = Buffer.from(".");

/**
 * `emptyFolder` reaches folders only by descriptors, so nobody can lead the removal out of the open folder. While it empties a folder, `emptyFolder`
 * never enters another mount. The memory and the open files of `emptyFolder` do not grow with the number of files, and each level of folders takes a
 * few hundred bytes. If `emptyFolder` goes through the folder tree several times, it returns only the failed removals of the last time.
 */
export async function emptyFolder(top: OpenFolder, options: EmptyOptions): Promise<Removed> {
  const removed = nothingRemoved();
  for (let round = 1; round <= MOST_ROUNDS; round += 1) {
    const before = removed.files + removed.folders;
    forgetFailures(removed);
    const work = new Emptying(top, options, removed);
    try {
      await work.run();
    } finally {
      work.closeAll();
    }
    const hasFailed = removed.failures + removed.mounts > 0;
    if (removed.files + removed.folders === before || (!hasFailed && !work.isDisturbed)) break;
  }
  return removed;
}

class Emptying {
  /** True if another process moved or removed folders while the agent went through the folder tree, so that the agent may have missed files. */
  isDisturbed = false;
  readonly #removed: Removed;
  readonly #options: EmptyOptions;
  readonly #frames: Frame[];
  #names = 0;
  #workingFolder: Frame | null = null;
  #breathedAt = performance.now();
  constructor(top: OpenFolder, options: EmptyOptions, removed: Removed) {
    this.#options = options;
    this.#removed = removed;
    this.#frames = [this.#frameOf(Buffer.alloc(0), "keep_folder", top)];
  }

  async run(): Promise<void> {
    for (let frame = this.#frames.at(-1); frame !== undefined; frame = this.#frames.at(-1)) {
      if (frame.mustLook) await this.#look(frame);
      const name = frame.folders.pop();
      if (name !== undefined) {
        this.#names -= 1;
        this.#enter(frame, name);
      } else if (frame.hasMore && this.#count() > frame.removedAtLook) frame.mustLook = true;
      else this.#leave(frame);
      if (this.#mustBreathe) await this.#breathe();
    }
  }

  /** Closes the descriptors of all folders below the top folder; the caller of `emptyFolder` closes the top folder. */
  closeAll(): void {
    if (this.#workingFolder !== null) process.chdir("/");
    for (const frame of this.#frames.slice(1)) if (frame.isOpen) closeSync(frame.open.fd);
    this.#frames.length = 0;
  }

  #frameOf = (name: Buffer, keep: Keep, open: OpenFolder): Frame => ({
    name,
    keep,
    open,
    isOpen: true,
    folders: [],
    mustLook: true,
    hasMore: false,
    removedAtLook: 0,
    failuresBefore: this.#removed.failures,
  });

  #count = (): number => this.#removed.files + this.#removed.folders;

  get #mustBreathe(): boolean {
    return performance.now() - this.#breathedAt > BREATHE_EVERY_MS;
  }

  /** Pauses the emptying of a folder, so that the process can receive signals, and reports the number of removed files and folders. */
  async #breathe(): Promise<void> {
    await breathe();
    this.#options.look(this.#removed);
    this.#breathedAt = performance.now();
  }

  async #look(frame: Frame): Promise<void> {
    frame.mustLook = false;
    frame.hasMore = false;
    frame.removedAtLook = this.#count();
    const room = Math.max(LEAST_NAMES, MOST_NAMES - this.#names);
    const resisting: Buffer[] = [];
    const entries = openEntries(frame.open.fd);
    try {
      for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
        // With the encoding `buffer`, Node.js returns names as bytes, but its types declare texts.
        const name = entry.name as unknown as Buffer;
        const keep = this.#keepOf(frame, name, kindOf(entry));
        if (keep === "keep") this.#removed.kept += 1;
        else if (!entry.isDirectory()) this.#removeFile(frame, name, resisting);
        else if (frame.folders.length < room) frame.folders.push(name);
        else frame.hasMore = true;
        if (this.#mustBreathe) await this.#breathe();
      }
    } finally {
      entries.closeSync();
    }
    this.#names += frame.folders.length;
    if (resisting.length > 0) this.#removeResisting(frame, resisting);
  }

  #removeFile(frame: Frame, name: Buffer, resisting: Buffer[]): void {
    const end = removeFile(this.#pathOf(frame, name), name, this.#removed);
    if (end === "folder") frame.hasMore = true;
    if (end !== "protected") return;
    if (resisting.length < MOST_INODES) resisting.push(name);
    else frame.hasMore = true;
  }

  #pathOf(frame: Frame, name: Buffer): Buffer {
    if (this.#options.reach === "descriptor") return entryPath(frame.open.fd, name);
    if (this.#workingFolder !== frame) {
      this.#workingFolder = null;
      process.chdir(entryPath(frame.open.fd, HERE).toString());
      this.#workingFolder = frame;
    }
    return name;
  }

  /** Removes files that an attribute protected, after it has cleared the attributes of the files and their folder. */
  #removeResisting(frame: Frame, names: readonly Buffer[]): void {
    const { fd, inode } = frame.open;
    this.#clear(fd, [inode, ...names.flatMap((name) => inodeOf(fd, name) ?? [])], names.length);
    for (const name of names) {
      const end = removeFile(this.#pathOf(frame, name), name, this.#removed);
      if (end === "folder") frame.hasMore = true;
      if (end === "protected") noteFailure(this.#removed, name, "the file system forbids the removal");
    }
  }

  #clear(folder: number, inodes: readonly bigint[], count: number): void {
    if (this.#options.clearAttributes(folder, inodes)) this.#removed.cleared += count;
  }

  #enter(frame: Frame, name: Buffer): void {
    const keep = this.#keepOf(frame, name, "folder");
    try {
      this.#frames.push(this.#frameOf(name, keep, openFolderIn(frame.open.fd, name, frame.open.mount)));
      this.#closeFarthest();
    } catch (error) {
      if (error instanceof OtherMount) {
        this.#removed.mounts += 1;
        noteFailure(this.#removed, name, "another file system is mounted here");
        return;
      }
      const code = codeOf(error);
      // The error codes ENOENT, ENOTDIR and ELOOP show that another process has removed or replaced the folder.
      if (["ENOENT", "ENOTDIR", "ELOOP"].includes(code)) this.isDisturbed = true;
      else noteFailure(this.#removed, name, code);
    }
  }

  /** If too many folders are open while the agent empties a folder tree, closes the open folder that is nearest to the top folder. */
  #closeFarthest(): void {
    const farthest = this.#frames.at(-MOST_OPEN);
    if (farthest === undefined || !farthest.isOpen || this.#frames.length <= MOST_OPEN) return;
    closeSync(farthest.open.fd);
    farthest.isOpen = false;
  }

  /** Removes an emptied folder, and continues in the folder's parent. */
  #leave(frame: Frame): void {
    this.#frames.pop();
    const parent = this.#frames.at(-1);
    if (parent === undefined) return;
    try {
      if (!this.#reopen(parent, frame.open)) {
        this.#abandon();
        return;
      }
    } finally {
      closeSync(frame.open.fd);
    }
    if (frame.keep === "remove") this.#removeFolder(parent, frame);
    else this.#removed.kept += 1;
  }

  /**
   * Opens a closed parent folder again from its subfolder `child`. `#reopen` returns false if a process has moved the subfolder into another folder.
   */
  #reopen(parent: Frame, child: OpenFolder): boolean {
    if (parent.isOpen) return true;
    try {
      const above = openParentOf(child);
      if (!isSameFolder(above, parent.open)) {
        closeSync(above.fd);
        return false;
      }
      parent.open = above;
      parent.isOpen = true;
      return true;
    } catch (error) {
      if (error instanceof OtherMount) return false;
      noteFailure(this.#removed, parent.name, codeOf(error));
      return false;
    }
  }

  /**
   * When it empties a folder tree, the agent skips a closed parent folder that it cannot open again from its subfolder. The agent empties the skipped
   * parent folders when it goes through the folder tree from the top once more.
   */
  #abandon(): void {
    this.isDisturbed = true;
    while (this.#frames.at(-1)?.isOpen === false) {
      const [frame] = this.#frames.splice(-1);
      this.#names -= frame?.folders.length ?? 0;
    }
  }

  #removeFolder(parent: Frame, frame: Frame): void {
    let end = removeFolder(parent.open.fd, frame.name, this.#removed);
    if (end === "protected") {
      this.#clear(parent.open.fd, [parent.open.inode, frame.open.inode], 1);
      end = removeFolder(parent.open.fd, frame.name, this.#removed);
      if (end === "protected") noteFailure(this.#removed, frame.name, "the file system forbids the removal");
    }
    if (end === "gone") this.isDisturbed = true;
    // If a removal in the folder has failed, `#removed` already contains the reason why the folder is not empty.
    if (end === "filled" && this.#removed.failures === frame.failuresBefore)
      noteFailure(this.#removed, frame.name, "a process fills it again and again");
  }

  #keepOf(frame: Frame, name: Buffer, kind: EntryKind): Keep {
    const isTop = this.#frames[0] === frame;
    if (!isTop && frame.keep === "remove") return "remove";
    const text = name.toString("latin1");
    if (!needsLook(frame.keep, isTop, text, kind)) return "remove";
    const facts = lstatSync(entryPath(frame.open.fd, name), { throwIfNoEntry: false });
    if (facts === undefined) return "remove";
    const folders = this.#frames.slice(1, this.#frames.indexOf(frame) + 1).map((one) => one.name.toString("latin1"));
    const path = [this.#options.path, ...folders, text].join("/");
    const entry = {
      name: text,
      kind,
      uid: facts.uid,
      mode: facts.mode,
      isListening: this.#options.listening.has(path),
    };
    return isTop ? keepAtTop(this.#options.use, entry, this.#options.bootId) : keepBelow(frame.keep, entry);
  }
}

const kindOf = (entry: Dirent): EntryKind => (entry.isDirectory() ? "folder" : entry.isSocket() ? "socket" : "other");

const openEntries = (folder: number): Dir =>
  // `opendirSync` also accepts and returns bytes, which the types of Node.js do not tell.
  opendirSync(entryPath(folder, HERE) as unknown as string, {
    encoding: "buffer" as BufferEncoding,
    bufferSize: 1_024,
  });

function inodeOf(folder: number, name: Buffer): bigint | null {
  return lstatSync(entryPath(folder, name), { bigint: true, throwIfNoEntry: false })?.ino ?? null;
}
