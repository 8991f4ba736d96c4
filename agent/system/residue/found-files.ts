import { Unreadable } from "./reading.ts";

/** How many files a list keeps, and how many bytes their paths may have together. */
export interface ListBounds {
  readonly most: number;
  readonly maxBytes: number;
}

/** How many examples the reason of an item with too many files names. */
const EXAMPLES = 3;

/**
 * Files that a walk over the disks found for one item. A tenant may make millions of them, so a list beyond its bounds keeps only the number of the
 * files and some examples. Such a list has no files to compare, and its item is unreadable.
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

  /** All files. Throws if the list does not have all of them. */
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

/** The path of a file on the disk, as bytes. A name may contain bytes that are not UTF-8. */
export const bytesOfPath = (path: string): Buffer => Buffer.from(path, "latin1");
export const textOfPath = (path: string): string => bytesOfPath(path).toString("utf8");
