import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

/**
 * A token of Muster's API is `mstr_<kind>_`, 43 random letters and digits, and 6 letters and digits of their CRC-32. Programs that search for leaked
 * secrets find a token by its beginning, and use the checksum to tell the token from other text.
 */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 43;
const CHECK_LENGTH = 6;
/** The largest multiple of 62 that a byte can hold. A random byte of 248 or more is drawn again, so that every letter and digit is equally likely. */
const FAIR_BELOW = 248;

/** The kind `first` is the admin token in the file of the hub's state folder; the kind `api` is every other token. */
export type TokenKind = "api" | "first";

export function newToken(kind: TokenKind): string {
  let body = `mstr_${kind}_`;
  for (let drawn = 0; drawn < RANDOM_LENGTH; ) {
    const [byte = FAIR_BELOW] = randomBytes(1);
    if (byte >= FAIR_BELOW) continue;
    body += ALPHABET[byte % ALPHABET.length];
    drawn += 1;
  }
  return body + checksumOf(body);
}

function checksumOf(body: string): string {
  let rest = crc32(body);
  let text = "";
  for (let place = 0; place < CHECK_LENGTH; place += 1) {
    text = `${ALPHABET[rest % ALPHABET.length]}${text}`;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return text;
}

/**
 * True for a text that begins like a token of Muster and whose checksum is wrong, e.g. after a wrong copy. A text with a wrong checksum is never a
 * valid token.
 */
export const isMiscopied = (token: string): boolean =>
  token.startsWith("mstr_") && checksumOf(token.slice(0, -CHECK_LENGTH)) !== token.slice(-CHECK_LENGTH);
