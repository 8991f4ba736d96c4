import { z } from "zod";

const MAX_LINE = 8_192;
const MAX_COMMENT = 256;
/** The largest number of SSH keys that a tenant's account on a host has. */
export const MOST_KEYS_OF_AN_ACCOUNT = 32;
export const MIN_RSA_BITS = 2_048;
export const MAX_RSA_BITS = 16_384;

/** The fields of each accepted type of SSH public key, in the order of RFC 4253 6.6, RFC 5656 3.1, RFC 8709 4 and OpenSSH's PROTOCOL.u2f. */
type Field =
  | { readonly kind: "text"; readonly equals: string }
  | { readonly kind: "application" }
  | { readonly kind: "bytes"; readonly length: number }
  | { readonly kind: "point"; readonly length: number }
  | { readonly kind: "exponent" }
  | { readonly kind: "modulus" };

const curve = (name: string, pointLength: number): readonly Field[] => [
  { kind: "text", equals: name },
  { kind: "point", length: pointLength },
];
const FIELDS: Readonly<Record<string, readonly Field[]>> = {
  "ssh-ed25519": [{ kind: "bytes", length: 32 }],
  "ecdsa-sha2-nistp256": curve("nistp256", 65),
  "ecdsa-sha2-nistp384": curve("nistp384", 97),
  "ecdsa-sha2-nistp521": curve("nistp521", 133),
  "ssh-rsa": [{ kind: "exponent" }, { kind: "modulus" }],
  "sk-ssh-ed25519@openssh.com": [{ kind: "bytes", length: 32 }, { kind: "application" }],
  "sk-ecdsa-sha2-nistp256@openssh.com": [...curve("nistp256", 65), { kind: "application" }],
};
export const SSH_KEY_TYPES: readonly string[] = Object.keys(FIELDS);

/** Returns the key type of an SSH public key line that `sshKeyFault` accepts. */
export const sshKeyType = (line: string): string => line.split(" ", 1)[0] ?? "";

/**
 * The line of an SSH public key begins with the key's type, so options of `authorized_keys` such as `command=` are not accepted. The key type inside
 * the base64 text must equal the key type at the beginning of the line.
 */
export function sshKeyFault(line: string): string | null {
  if (line.includes("PRIVATE KEY"))
    return "is a private key; give the public key, such as the file id_ed25519.pub, and make a new pair if others may have seen this one";
  if (line.length > MAX_LINE) return `is longer than ${MAX_LINE} characters`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the check is for control characters.
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(line))
    return "is more than one line or contains control characters";
  const [, type, base64, comment = ""] = /^([^ ]+) ([A-Za-z0-9+/]+={0,2})(?: (.*))?$/.exec(line) ?? [];
  const fields = type === undefined || !Object.hasOwn(FIELDS, type) ? undefined : FIELDS[type];
  if (type === undefined || base64 === undefined || fields === undefined)
    return `must be "TYPE KEY COMMENT", without options before the type, and the type one of ${SSH_KEY_TYPES.join(", ")}`;
  if (comment.length > MAX_COMMENT) return `has a comment longer than ${MAX_COMMENT} characters`;
  const blob = decoded(base64);
  if (blob === null) return "contains a key that is not base64";
  const parts = partsOf(blob);
  if (parts === null) return "contains a key that is cut off or damaged";
  const [inner, ...values] = parts;
  if (inner === undefined || textOf(inner) !== type)
    return `says that it is ${type}, and contains a key of another type`;
  if (values.length !== fields.length)
    return `contains a ${type} key with ${values.length} fields and not ${fields.length}`;
  for (const [index, field] of fields.entries()) {
    const fault = faultOf(field, values[index] ?? new Uint8Array());
    if (fault !== null) return `contains a ${type} key ${fault}`;
  }
  return null;
}

/** A line of `authorized_keys` has a type, a key and an optional comment. */
export const SshPublicKey = z
  .string()
  .min(1)
  .max(MAX_LINE)
  .superRefine((line, context) => {
    const fault = sshKeyFault(line);
    if (fault !== null) context.addIssue({ code: "custom", message: fault });
  });
export type SshPublicKey = z.output<typeof SshPublicKey>;

function decoded(base64: string): Uint8Array | null {
  if (base64.length % 4 !== 0) return null;
  const text = atob(base64);
  // A second base64 encoding of a key would look like another key, so only the canonical encoding is accepted.
  return btoa(text) === base64 ? Uint8Array.from(text, (character) => character.charCodeAt(0)) : null;
}

/** Each field of an SSH public key begins with its length, a number of four bytes. */
function partsOf(blob: Uint8Array): Uint8Array[] | null {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
  const parts: Uint8Array[] = [];
  let at = 0;
  while (at < blob.length) {
    if (at + 4 > blob.length) return null;
    const end = at + 4 + view.getUint32(at);
    if (end > blob.length) return null;
    parts.push(blob.subarray(at + 4, end));
    at = end;
  }
  return parts;
}

const textOf = (bytes: Uint8Array): string => String.fromCharCode(...bytes.subarray(0, 100));

function faultOf(field: Field, value: Uint8Array): string | null {
  switch (field.kind) {
    case "text":
      return textOf(value) === field.equals ? null : `that is not on the curve ${field.equals}`;
    case "application":
      return value.length > 0 && value.length <= 256 ? null : "without the name of an application";
    case "bytes":
      return value.length === field.length ? null : `of ${value.length} bytes and not ${field.length}`;
    case "point":
      return value.length === field.length && value[0] === 4
        ? null
        : "whose point is not an uncompressed point of its curve";
    case "exponent": {
      const bits = bitsOf(value);
      return bits !== null && bits >= 2 && bits <= 64 && ((value.at(-1) ?? 0) & 1) === 1
        ? null
        : "with an unusable exponent";
    }
    case "modulus": {
      const bits = bitsOf(value);
      if (bits === null) return "whose modulus is not a positive number";
      return bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS
        ? null
        : `of ${bits} bits and not ${MIN_RSA_BITS} to ${MAX_RSA_BITS}`;
    }
  }
}

/** Returns how many bits a positive number in the format `mpint` (RFC 4251 5) has, or null for a negative number or needless zeros. */
function bitsOf(value: Uint8Array): number | null {
  const [first, second] = value;
  if (first === undefined || first >= 0x80) return null;
  if (first !== 0) return (value.length - 1) * 8 + (32 - Math.clz32(first));
  return second !== undefined && second >= 0x80 ? (value.length - 1) * 8 : null;
}
