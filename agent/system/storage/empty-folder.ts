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
  /** The path of the folder, as processes name it. */
  readonly path: string;
  /** The boot id without dashes. */
  readonly bootId: string;
  /** The paths of the sockets at which a running process listens. */
  readonly listening: ReadonlySet<string>;
  readonly clearAttributes: ClearAttributes;
  readonly reach: Reach;
  /** Called often. May throw, and then the work stops. */
  readonly look: (removed: Removed) => void;
}

/**
 * How the work names a file in an open folder. `descriptor` names the file by a path through the folder's descriptor. `working_folder` makes the open
 * folder the working folder of the process, which saves a third of the time of a removal. A program that also does other things cannot do that.
 */
export type Reach = "descriptor" | "working_folder";

/** The state of one folder on the way from the emptied folder down to the present one. */
interface Frame {
  readonly name: Buffer;
  readonly keep: Keep;
  /** The descriptor is closed while the work is deep below the folder, and opened again from below. */
  open: OpenFolder;
  isOpen: boolean;
  /** The names of folders in the folder that are still to be emptied. */
  readonly folders: Buffer[];
  mustLook: boolean;
  /** Whether the folder has more entries than the last look took. */
  hasMore: boolean;
  /** The number of removed things at the last look. Without a removal a further look finds the same. */
  removedAtLook: number;
  /** The number of failures when the work came to the folder. */
  readonly failuresBefore: number;
}

/** How many folders on the way down stay open at the same time. Linux limits the open files of a process. */
const MOST_OPEN = 64;
/** How many names of folders the work holds in memory, over all levels. A level always gets some, so that the work advances. */
const MOST_NAMES = 100_000;
const LEAST_NAMES = 16;
/** How often the work begins again at the top, because processes moved or filled folders meanwhile. */
const MOST_ROUNDS = 5;
const BREATHE_EVERY_MS = 20;
const HERE = Buffer.from(".");

/**
 * Removes everything in an open folder, except what `kept.ts` keeps. The work goes by descriptors only: a process that moves folders or replaces them
 * by symbolic links while the work runs cannot lead it out of the folder. The work never crosses a mount. The memory and the open files of the work
 * do not grow with the number of files, and grow by a few hundred bytes with each level. The counts of failures are those of the last round.
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

/** One round over a folder, from the top to the deepest folder and back. */
class Emptying {
  /** Whether another process changed folders under the work, so that a round may have missed something. */
  isDisturbed = false;
  readonly #removed: Removed;
  readonly #options: EmptyOptions;
  readonly #frames: Frame[];
  #names = 0;
  /** The folder that is the working folder of the process. */
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

  /** Closes the descriptors of the folders below the top. The caller opened the top and closes it. */
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

  /** Lets the process receive signals, and tells how far the work is. */
  async #breathe(): Promise<void> {
    await breathe();
    this.#options.look(this.#removed);
    this.#breathedAt = performance.now();
  }

  /** Reads the folder once: removes its files, and notes the names of its folders. */
  async #look(frame: Frame): Promise<void> {
    frame.mustLook = false;
    frame.hasMore = false;
    frame.removedAtLook = this.#count();
    const room = Math.max(LEAST_NAMES, MOST_NAMES - this.#names);
    const resisting: Buffer[] = [];
    const entries = openEntries(frame.open.fd);
    try {
      for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
        // The types of Node.js do not know names that are bytes.
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

  /** Clears the attributes of files that resisted, and of their folder, and removes the files. */
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
      // Another process has removed or replaced the folder.
      if (["ENOENT", "ENOTDIR", "ELOOP"].includes(code)) this.isDisturbed = true;
      else noteFailure(this.#removed, name, code);
    }
  }

  /** Closes the highest open folder below the top, if too many folders are open. */
  #closeFarthest(): void {
    const farthest = this.#frames.at(-MOST_OPEN);
    if (farthest === undefined || !farthest.isOpen || this.#frames.length <= MOST_OPEN) return;
    closeSync(farthest.open.fd);
    farthest.isOpen = false;
  }

  /** Goes back from an emptied folder to its parent, and removes the folder there. */
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

  /** Opens the parent folder again from below. Returns false if the folder was moved away meanwhile, so that something else is above it. */
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

  /** Gives up the way back to the folders above that are closed. The next round finds them from the top. */
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
    // The failure that left something in the folder is noted already.
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
  // The types of Node.js do not know that `opendirSync` also takes a path of bytes and gives names of bytes.
  opendirSync(entryPath(folder, HERE) as unknown as string, {
    encoding: "buffer" as BufferEncoding,
    bufferSize: 1_024,
  });

function inodeOf(folder: number, name: Buffer): bigint | null {
  return lstatSync(entryPath(folder, name), { bigint: true, throwIfNoEntry: false })?.ino ?? null;
}
