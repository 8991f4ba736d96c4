import { Unreadable } from "./reading.ts";

/** How many files a `FoundFiles` list keeps, and how many bytes their paths may have together. */
export interface ListBounds {
  readonly most: number;
  readonly maxBytes: number;
}

/** How many files a message about too many files names as examples. */
const EXAMPLES = 3;

/**
 * A tenant may make millions of files, so a list beyond its bounds keeps only their number and a few examples. If the walk over the disks finds more
 * files than a list may have, the item of the residue snapshot that needs the list is unreadable.
 */
export class FoundFiles<T extends { readonly path: string }> {
  #files: T[] = [];
  #count = 0;
  #bytes = 0;
  readonly #bounds: ListBounds;
  constructor(bounds: ListBounds) {
    this.#bounds = bounds;
  }

  add(file: T): void {
    const isWhole = this.#isWhole();
    this.#count += 1;
    this.#bytes += file.path.length;
    if (this.#isWhole()) this.#files.push(file);
    else if (isWhole) this.#files = this.#files.slice(0, EXAMPLES);
  }

  /** Throws if the walk over the disks found more files than the bounds of the list allow. */
  all(): readonly T[] {
    if (this.#isWhole()) return this.#files;
    const examples = this.#files.slice(0, EXAMPLES).map(({ path }) => textOfPath(path));
    throw new Unreadable(
      `There are ${this.#count} such files, which is too many to list, for example ${examples.join(", ")}.`,
    );
  }

  #isWhole(): boolean {
    return this.#count <= this.#bounds.most && this.#bytes <= this.#bounds.maxBytes;
  }
}

/** Converts a path with one character for each byte into bytes, because file names need not be UTF-8. */
export const bytesOfPath = (path: string): Buffer => Buffer.from(path, "latin1");
export const textOfPath = (path: string): string => bytesOfPath(path).toString("utf8");
