import { createHash } from "node:crypto";

/** Returns the fingerprint of an SSH public key as `ssh-keygen -l` prints it. The comment of an SSH key does not change its fingerprint. */
export function sshFingerprint(line: string): string {
  const [, base64 = ""] = line.split(" ");
  const hash = createHash("sha256").update(Buffer.from(base64, "base64")).digest("base64");
  return `SHA256:${hash.replace(/=+$/, "")}`;
}
