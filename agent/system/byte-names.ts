import { isUtf8 } from "node:buffer";

/**
 * The first of 256 code units that stand for bytes of a name that is not UTF-8. The code units that stand for single bytes are halves of surrogate
 * pairs, which no UTF-8 text contains, so each text leads back to the bytes of its name.
 */
const BYTES_FROM = 0xdc00;
/** Matches the code units by which `textOfName` represents single bytes of a name that is not UTF-8. */
const BYTE = /[\u{dc80}-\u{dcff}]/gu;

/** Returns the name of a file as a text. File names are bytes, and a tenant may choose bytes that are not UTF-8. */
export function textOfName(name: Buffer): string {
  if (isUtf8(name)) return name.toString("utf8");
  let text = "";
  for (let at = 0; at < name.length; ) {
    const length = [1, 2, 3, 4].find((one) => at + one <= name.length && isUtf8(name.subarray(at, at + one)));
    text +=
      length === undefined ? String.fromCharCode(BYTES_FROM + (name[at] ?? 0)) : name.toString("utf8", at, at + length);
    at += length ?? 1;
  }
  return text;
}

/** Returns the bytes of a path whose names come from `textOfName`. */
export function bytesOfName(path: string): Buffer {
  if (path.isWellFormed()) return Buffer.from(path);
  return Buffer.concat(
    [...path].map((character) => {
      const code = character.codePointAt(0) ?? 0;
      return code >= 0xdc80 && code <= 0xdcff ? Buffer.from([code - BYTES_FROM]) : Buffer.from(character);
    }),
  );
}

/** Shows the bytes of a name that are not UTF-8 as hexadecimal numbers, for a message. */
export const shownName = (text: string): string =>
  text.replace(BYTE, (one) => `\\x${((one.codePointAt(0) ?? 0) - BYTES_FROM).toString(16)}`);
