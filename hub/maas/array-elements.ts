/** The error for a received text that is not a JSON array, or that is only the beginning of one. */
export class BrokenArray extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "BrokenArray";
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
const isBlank = (text: string): boolean => /^[ \t\n\r]*$/.test(text);

/**
 * Cuts a JSON array into its elements while its bytes arrive, so that memory holds only one element at a time. `ArrayElements` finds only the end of
 * each element of the JSON array, and leaves the check of the element to `JSON.parse`. Together with `JSON.parse`, the class `ArrayElements` accepts
 * exactly the arrays that `JSON.parse` alone would accept.
 */
export class ArrayElements {
  readonly #take: (element: unknown) => void;
  readonly #maxBytes: number;
  #where: "before" | "inside" | "behind" = "before";
  /** The number of open brackets within the array element that the parser reads now. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  #parts: Buffer[] = [];
  #bytes = 0;
  #count = 0;

  /**
   * The parser calls `take` for each element of the array, in order. For an element of more than `maxBytes`, the parser calls `take` with
   * `undefined`.
   */
  constructor(take: (element: unknown) => void, maxBytes: number) {
    this.#take = take;
    this.#maxBytes = maxBytes;
  }

  /** Takes the next bytes of the JSON text. `push` throws BrokenArray as soon as the received bytes cannot be the beginning of a JSON array. */
  push(chunk: Buffer): void {
    let from = this.#where === "before" ? this.#open(chunk) : 0;
    let at = from;
    while (this.#where === "inside" && at < chunk.length) {
      const end = this.#endOfElement(chunk, at);
      this.#keep(chunk.subarray(from, end));
      if (end === chunk.length) return;
      this.#close(chunk[end] === COMMA);
      if (chunk[end] === CLOSE_ARRAY) this.#where = "behind";
      else if (chunk[end] !== COMMA) throw new BrokenArray("the array is closed by another bracket");
      at = end + 1;
      from = at;
    }
    if (this.#where === "behind" && !isBlank(chunk.toString("latin1", from)))
      throw new BrokenArray("something follows the array");
  }

  /** Ends the JSON text, and throws BrokenArray if the array is not closed. */
  end(): void {
    if (this.#where !== "behind") throw new BrokenArray(`it breaks off after ${this.#count} elements`);
  }

  /** Returns the position where the array's elements begin, or the chunk's length if only blanks have arrived. */
  #open(chunk: Buffer): number {
    const at = chunk.findIndex((byte) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d);
    if (at < 0) return chunk.length;
    if (chunk[at] !== OPEN_ARRAY) throw new BrokenArray("it is no JSON array");
    this.#where = "inside";
    return at + 1;
  }

  /**
   * Returns the position of the comma or bracket that ends the element, or the chunk's length if the element continues. The bytes of multi-byte UTF-8
   * characters never equal a comma, bracket, quote or backslash.
   */
  #endOfElement(chunk: Buffer, begin: number): number {
    let depth = this.#depth;
    let inString = this.#inString;
    let escaped = this.#escaped;
    let at = begin;
    for (; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === BACKSLASH) escaped = true;
        else if (byte === QUOTE) inString = false;
      } else if (byte === QUOTE) inString = true;
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth += 1;
      else if (byte === COMMA && depth === 0) break;
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        if (depth === 0) break;
        depth -= 1;
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    this.#escaped = escaped;
    return at;
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) this.#parts = [];
    else this.#parts.push(part);
  }

  #close(more: boolean): void {
    const tooLarge = this.#bytes > this.#maxBytes;
    const text = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    this.#bytes = 0;
    if (!tooLarge && !more && this.#count === 0 && isBlank(text)) return;
    this.#count += 1;
    this.#take(tooLarge ? undefined : this.#parse(text));
  }

  #parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      // JSON.parse's own error message would repeat a piece of MAAS's text, so the parser does not use this message.
      throw new BrokenArray(`element ${this.#count} is not JSON`);
    }
  }
}
