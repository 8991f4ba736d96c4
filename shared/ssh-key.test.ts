import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { MAX_RSA_BITS, MIN_RSA_BITS, SSH_KEY_TYPES, SshPublicKey, sshKeyFault } from "./ssh-key.ts";

const field = (bytes: Buffer | string): Buffer => {
  const content = Buffer.from(bytes as string);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
};
const number = (bytes: Buffer): Buffer =>
  field((bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
const blob = (...fields: Buffer[]): string => Buffer.concat(fields).toString("base64");
const part = (text: string | undefined): Buffer => Buffer.from(text ?? "", "base64url");

function rsaBlob(bits: number): string {
  const jwk = generateKeyPairSync("rsa", { modulusLength: bits }).publicKey.export({ format: "jwk" });
  return blob(field("ssh-rsa"), number(part(jwk.e)), number(part(jwk.n)));
}
function ecPoint(curve: string): Buffer {
  const jwk = generateKeyPairSync("ec", { namedCurve: curve }).publicKey.export({ format: "jwk" });
  return Buffer.concat([Buffer.from([4]), part(jwk.x), part(jwk.y)]);
}
const ed25519 = (): Buffer => part(generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x);
const ecdsa = (type: string, name: string, curve: string, ...more: Buffer[]): string =>
  blob(field(type), field(name), field(ecPoint(curve)), ...more);

const KEYS: Readonly<Record<string, string>> = {
  "ssh-ed25519": blob(field("ssh-ed25519"), field(ed25519())),
  "ecdsa-sha2-nistp256": ecdsa("ecdsa-sha2-nistp256", "nistp256", "P-256"),
  "ecdsa-sha2-nistp384": ecdsa("ecdsa-sha2-nistp384", "nistp384", "P-384"),
  "ecdsa-sha2-nistp521": ecdsa("ecdsa-sha2-nistp521", "nistp521", "P-521"),
  "ssh-rsa": rsaBlob(2048),
  "sk-ssh-ed25519@openssh.com": blob(field("sk-ssh-ed25519@openssh.com"), field(ed25519()), field("ssh:")),
  "sk-ecdsa-sha2-nistp256@openssh.com": ecdsa("sk-ecdsa-sha2-nistp256@openssh.com", "nistp256", "P-256", field("ssh:")),
};
const ed = `ssh-ed25519 ${KEYS["ssh-ed25519"]}`;

describe("an SSH public key", () => {
  it.each(SSH_KEY_TYPES)("of the type %s is accepted with and without a comment", (type) => {
    expect(sshKeyFault(`${type} ${KEYS[type]}`)).toBeNull();
    expect(SshPublicKey.parse(`${type} ${KEYS[type]} ada@example, her key`)).toContain(type);
  });

  it.each(
    SSH_KEY_TYPES.flatMap((outer) => SSH_KEY_TYPES.filter((inner) => inner !== outer).map((inner) => [outer, inner])),
  )("that says %s must not contain a key of the type %s", (outer, inner) => {
    expect(sshKeyFault(`${outer} ${KEYS[inner ?? ""]}`)).toContain("of another type");
  });

  it.each(SSH_KEY_TYPES)("of the type %s is refused when it is cut anywhere or something follows it", (type) => {
    const bytes = Buffer.from(KEYS[type] ?? "", "base64");
    for (let length = 1; length < bytes.length; length += 1)
      expect(sshKeyFault(`${type} ${bytes.subarray(0, length).toString("base64")}`), `${length} bytes`).not.toBeNull();
    expect(sshKeyFault(`${type} ${Buffer.concat([bytes, field("more")]).toString("base64")}`)).not.toBeNull();
    expect(sshKeyFault(`${type} ${Buffer.concat([bytes, Buffer.from([0])]).toString("base64")}`)).not.toBeNull();
  });

  it.each([
    ["RSA of 1024 bits", `ssh-rsa ${rsaBlob(1024)}`, `and not ${MIN_RSA_BITS} to ${MAX_RSA_BITS}`],
    ["RSA of 2040 bits", `ssh-rsa ${rsaBlob(2040)}`, "of 2040 bits"],
    [
      "RSA with a negative modulus",
      `ssh-rsa ${blob(field("ssh-rsa"), field(Buffer.from([1, 0, 1])), field(Buffer.alloc(256, 0xff)))}`,
      "modulus",
    ],
    [
      "RSA with a needless zero",
      `ssh-rsa ${blob(field("ssh-rsa"), field(Buffer.from([1, 0, 1])), field(Buffer.concat([Buffer.alloc(2), Buffer.alloc(256, 0xff)])))}`,
      "modulus",
    ],
    [
      "RSA with an even exponent",
      `ssh-rsa ${blob(field("ssh-rsa"), field(Buffer.from([2])), number(Buffer.alloc(256, 0xff)))}`,
      "exponent",
    ],
    [
      "RSA with the exponent 1",
      `ssh-rsa ${blob(field("ssh-rsa"), field(Buffer.from([1])), number(Buffer.alloc(256, 0xff)))}`,
      "exponent",
    ],
    ["DSA", `ssh-dss ${blob(field("ssh-dss"), field("x"))}`, "TYPE KEY COMMENT"],
    ["a certificate", `ssh-ed25519-cert-v01@openssh.com ${KEYS["ssh-ed25519"]}`, "TYPE KEY COMMENT"],
    ["a type that every object has", `constructor ${KEYS["ssh-ed25519"]}`, "TYPE KEY COMMENT"],
    ["options before the type", `command="/bin/sh" ${ed}`, "TYPE KEY COMMENT"],
    ["one option before the type", `no-pty ${ed}`, "TYPE KEY COMMENT"],
    ["a space before the type", ` ${ed}`, "TYPE KEY COMMENT"],
    ["two spaces", ed.replace(" ", "  "), "TYPE KEY COMMENT"],
    ["a line end", `${ed}\n`, "more than one line"],
    ["a second key", `${ed}\n${ed}`, "more than one line"],
    ["a carriage return", `${ed}\r`, "control characters"],
    ["a tab", ed.replace(" ", "\t"), "control characters"],
    ["an escape in the comment", `${ed} \u001b[2J`, "control characters"],
    ["a line separator in the comment", `${ed} a\u2028b`, "more than one line"],
    ["a zero byte", `${ed} a\0`, "control characters"],
    ["a long comment", `${ed} ${"c".repeat(257)}`, "comment longer"],
    ["a long line", `${ed} ${"c".repeat(9_000)}`, "longer than"],
    ["base64 of the wrong length", `ssh-ed25519 ${KEYS["ssh-ed25519"]}A`, "not base64"],
    ["the first line of a private key", "-----BEGIN OPENSSH PRIVATE KEY-----", "is a private key"],
    ["a whole private key", `-----BEGIN RSA PRIVATE KEY-----\n${"A".repeat(9_000)}\n`, "is a private key"],
    ["a point of another curve", `ecdsa-sha2-nistp256 ${ecdsa("ecdsa-sha2-nistp256", "nistp256", "P-384")}`, "point"],
    [
      "the name of another curve",
      `ecdsa-sha2-nistp256 ${ecdsa("ecdsa-sha2-nistp256", "nistp384", "P-256")}`,
      "not on the curve",
    ],
    [
      "a length beyond the key",
      `ssh-ed25519 ${Buffer.from([0xff, 0xff, 0xff, 0xff, 1]).toString("base64")}`,
      "cut off",
    ],
  ])("is refused with %s", (_what, line, fault) => {
    expect(sshKeyFault(line)).toContain(fault);
    expect(SshPublicKey.safeParse(line).success).toBe(false);
  });

  it("has one encoding only, so that two lines with one key are equal", () => {
    const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const key = KEYS["sk-ssh-ed25519@openssh.com"] ?? "";
    // In base64, the last letter before the padding may have bits that decode to nothing.
    const twin = key.replace(/([^=])=$/, (_all, letter: string) => `${ALPHABET[ALPHABET.indexOf(letter) + 1]}=`);
    expect(twin).not.toBe(key);
    expect(Buffer.from(twin, "base64")).toEqual(Buffer.from(key, "base64"));
    expect(sshKeyFault(`sk-ssh-ed25519@openssh.com ${twin}`)).toContain("not base64");
  });
});
