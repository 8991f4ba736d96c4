import { createHmac, randomBytes } from "node:crypto";
import { join } from "node:path";
import { readText, writeAtomically } from "../files.ts";

/**
 * The file with the secret key from which the agent computes the digests in its residue snapshots. Without a secret key, an outsider could guess
 * texts, such as a password's hash, from their digests.
 */
const KEY_FILE = "var/lib/muster/agent/residue-key";
const KEY_BYTES = 32;

/** The agent keeps the key of the digests in its residue snapshots until the host's reimage, so that digests of one generation are comparable. */
export async function keyedDigest(root: string): Promise<(text: string) => string> {
  const file = join(root, KEY_FILE);
  const stored = Buffer.from((await readText(file)) ?? "", "base64");
  const key = stored.length === KEY_BYTES ? stored : randomBytes(KEY_BYTES);
  if (key !== stored) await writeAtomically(file, `${key.toString("base64")}\n`, 0o600);
  return (text) => createHmac("sha256", key).update(text).digest("base64url").slice(0, 16);
}
