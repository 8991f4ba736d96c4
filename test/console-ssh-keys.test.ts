/** Compares the console's check of an SSH public key with the API's: the browser's code cannot use the code of the hub. */
import { expect, it } from "vitest";
import { sshKeyError } from "../hub/console/app/forms/ssh-key.ts";
import { SSH_KEY_TYPES, SshPublicKey } from "../shared/ssh-key.ts";

const bytes = (length: number, first = 1, last = 1): Buffer => {
  const all = Buffer.alloc(length, 7);
  all[0] = first;
  all[length - 1] = last;
  return all;
};
/** A number of so many bits, as OpenSSH writes it: a leading zero keeps it positive. */
const number = (bits: number): Buffer =>
  bits % 8 === 0
    ? Buffer.concat([Buffer.alloc(1), bytes(bits / 8, 0x80)])
    : bytes(Math.ceil(bits / 8), 1 << ((bits % 8) - 1));
const blob = (...parts: (string | Buffer)[]): string =>
  Buffer.concat(
    parts.map((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(Buffer.byteLength(part));
      return Buffer.concat([length, Buffer.from(part)]);
    }),
  ).toString("base64");
const line = (type: string, ...parts: (string | Buffer)[]): string => `${type} ${blob(type, ...parts)}`;
const E = number(17);
const SK = "sk-ssh-ed25519@openssh.com";

const WHOLE = [
  line("ssh-ed25519", bytes(32)),
  `${line("ssh-ed25519", bytes(32))} ada lovelace@acme`,
  line("ecdsa-sha2-nistp256", "nistp256", bytes(65, 4)),
  line("ecdsa-sha2-nistp384", "nistp384", bytes(97, 4)),
  line("ecdsa-sha2-nistp521", "nistp521", bytes(133, 4)),
  line("ssh-rsa", E, number(2048)),
  line("ssh-rsa", E, number(2049)),
  line("ssh-rsa", number(64), number(4096)),
  line(SK, bytes(32), "ssh:"),
  line("sk-ecdsa-sha2-nistp256@openssh.com", "nistp256", bytes(65, 4), "ssh:"),
  `${line("ssh-ed25519", bytes(32))} ${"c".repeat(256)}`,
];
const BROKEN = [
  "",
  "hello",
  "ssh-ed25519",
  "-----BEGIN OPENSSH PRIVATE KEY-----",
  `command="id" ${line("ssh-ed25519", bytes(32))}`,
  ` ${line("ssh-ed25519", bytes(32))}`,
  `${line("ssh-ed25519", bytes(32))}\n${line("ssh-ed25519", bytes(32))}`,
  `${line("ssh-ed25519", bytes(32))} a\u2028b`,
  `${line("ssh-ed25519", bytes(32))} a\u0085b`,
  `${line("ssh-ed25519", bytes(32))} ${"c".repeat(257)}`,
  line("ssh-ed25519", bytes(31)),
  line("ssh-ed25519", bytes(32), "more"),
  line("ssh-dss", bytes(32)),
  line("toString", bytes(32)),
  `ssh-ed25519 ${blob("ssh-rsa", bytes(32))}`,
  `ssh-ed25519 ${blob("ssh-ed25519", bytes(32)).slice(0, -4)}`,
  // 51 bytes have no padding, so two more letters are another encoding of the same bytes and one more.
  `ssh-ed25519 ${blob("ssh-ed25519", bytes(32))}AB==`,
  `ssh-ed25519 ${blob("ssh-ed25519", bytes(32))}A`,
  line("ecdsa-sha2-nistp256", "nistp384", bytes(65, 4)),
  line("ecdsa-sha2-nistp256", "nistp256", bytes(65, 2)),
  line("ecdsa-sha2-nistp256", "nistp256", bytes(64, 4)),
  line("ssh-rsa", E, number(2047)),
  line("ssh-rsa", E, number(16_385)),
  line("ssh-rsa", E, Buffer.concat([Buffer.alloc(1), number(2047)])),
  line("ssh-rsa", E, bytes(256, 0x80)),
  line("ssh-rsa", bytes(1, 4, 4), number(2048)),
  line("ssh-rsa", bytes(1, 1, 1), number(2048)),
  line("ssh-rsa", number(65), number(2048)),
  line("ssh-rsa", E, Buffer.alloc(0)),
  line(SK, bytes(32), ""),
  line(SK, bytes(32), "a".repeat(257)),
  `ssh-rsa ${"A".repeat(8_192)}`,
];

it.each(WHOLE)("takes %.60s, as the API does", (key) => {
  expect(SshPublicKey.safeParse(key).success).toBe(true);
  expect(sshKeyError(key)).toBeUndefined();
});

it.each(BROKEN)("refuses %.60j, as the API does", (key) => {
  expect(SshPublicKey.safeParse(key).success).toBe(false);
  expect(sshKeyError(key)).toMatch(/^(is|has) /);
});

it("knows the types that the API knows", () => {
  expect(new Set(WHOLE.map((key) => key.split(" ")[0]))).toEqual(new Set(SSH_KEY_TYPES));
});
