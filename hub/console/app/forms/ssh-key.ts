/**
 * The check of an SSH public key before the console sends it. The check of an SSH public key follows the rules of docs/ssh-keys.md, and
 * test/console-ssh-keys.test.ts compares its verdicts with the API's.
 */
const MAX_LINE = 8_192;
const MAX_COMMENT = 256;
const RSA_BITS = { least: 2_048, most: 16_384 };
/** The largest number of bits of an RSA key's public exponent. */
const MAX_EXPONENT_BITS = 64;

type Part = (bytes: Uint8Array) => boolean;
const textOf = (bytes: Uint8Array): string => String.fromCharCode(...bytes.subarray(0, 100));
const isText =
  (text: string): Part =>
  (bytes) =>
    textOf(bytes) === text;
const hasLength =
  (length: number): Part =>
  (bytes) =>
    bytes.length === length;
/** The bytes of an uncompressed elliptic-curve point begin with the byte 4. */
const isPoint =
  (length: number): Part =>
  (bytes) =>
    bytes.length === length && bytes[0] === 4;
const isApplication: Part = ({ length }) => length > 0 && length <= 256;

/** The number of bits of a positive number, or 0 for a negative number or one with needless zeros. */
function bitsOf(bytes: Uint8Array): number {
  const [first = 0x80, second = 0] = bytes;
  if (first >= 0x80) return 0;
  if (first !== 0) return (bytes.length - 1) * 8 + (32 - Math.clz32(first));
  return second >= 0x80 ? (bytes.length - 1) * 8 : 0;
}
const isExponent: Part = (bytes) => {
  const bits = bitsOf(bytes);
  return bits >= 2 && bits <= MAX_EXPONENT_BITS && ((bytes.at(-1) ?? 0) & 1) === 1;
};
const isModulus: Part = (bytes) => {
  const bits = bitsOf(bytes);
  return bits >= RSA_BITS.least && bits <= RSA_BITS.most;
};

/** The parts that an SSH public key of each type has after the name of the type. */
const PARTS: Readonly<Record<string, readonly Part[]>> = {
  "ssh-ed25519": [hasLength(32)],
  "ecdsa-sha2-nistp256": [isText("nistp256"), isPoint(65)],
  "ecdsa-sha2-nistp384": [isText("nistp384"), isPoint(97)],
  "ecdsa-sha2-nistp521": [isText("nistp521"), isPoint(133)],
  "ssh-rsa": [isExponent, isModulus],
  "sk-ssh-ed25519@openssh.com": [hasLength(32), isApplication],
  "sk-ecdsa-sha2-nistp256@openssh.com": [isText("nistp256"), isPoint(65), isApplication],
};

/** Only the canonical base64 text of a key's bytes is accepted, because another base64 text of the same bytes would look like another key. */
function decoded(base64: string): Uint8Array | null {
  try {
    const text = atob(base64);
    return btoa(text) === base64 ? Uint8Array.from(text, (character) => character.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}

/** In the bytes of an SSH public key, each part begins with its length in four bytes. */
function partsOf(blob: Uint8Array): Uint8Array[] | null {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < blob.length; ) {
    if (at + 4 > blob.length) return null;
    const end = at + 4 + view.getUint32(at);
    if (end > blob.length) return null;
    parts.push(blob.subarray(at + 4, end));
    at = end;
  }
  return parts;
}

function isWhole(type: string, wanted: readonly Part[], base64: string): boolean {
  const blob = decoded(base64);
  const [inner, ...parts] = (blob === null ? null : partsOf(blob)) ?? [];
  if (inner === undefined || textOf(inner) !== type || parts.length !== wanted.length) return false;
  return wanted.every((fits, index) => fits(parts[index] ?? new Uint8Array()));
}

/**
 * Says why a line is no valid SSH public key. For a private key, the message says that it is a private key, so that its owner learns that the key
 * must not be used any more.
 */
export function sshKeyError(line: string): string | undefined {
  if (line === "") return "is missing";
  if (line.includes("PRIVATE KEY"))
    return "is a private key. Give the public key, usually the file that ends in .pub, and make a new pair if others may have seen this one";
  if (line.length > MAX_LINE) return `is longer than ${MAX_LINE} characters`;
  if (/[\p{Cc}\u2028\u2029]/u.test(line)) return "is more than one line";
  const [, type = "", base64 = "", comment = ""] = /^([^ ]+) ([A-Za-z0-9+/]+={0,2})(?: (.*))?$/.exec(line) ?? [];
  const wanted = Object.hasOwn(PARTS, type) ? PARTS[type] : undefined;
  if (wanted === undefined)
    return `is no public key: the type, the key and a comment, and the type one of ${Object.keys(PARTS).join(", ")}`;
  if (comment.length > MAX_COMMENT) return `has a comment that is longer than ${MAX_COMMENT} characters`;
  return isWhole(type, wanted, base64)
    ? undefined
    : `is no whole key of the type ${type}; RSA needs 2048 to 16384 bits`;
}
