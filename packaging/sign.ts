import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/**
 * The file with the fingerprints of the release keys. The fingerprints of the release keys are in git and in the hub's package, so a person can check
 * a downloaded key by them.
 */
export const RELEASE_KEYS = "release-keys.txt";

const CHECKSUMS = "SHA256SUMS";
const SIGNATURE = `${CHECKSUMS}.sig`;
const PUBLIC_KEY = "muster-release.pub.pem";

/**
 * Writes the SHA-256 sums of all Debian packages and bills of materials in the folder, including those of earlier builds. `signPackages` also writes
 * an Ed25519 signature of the file with the SHA-256 sums. To verify the checksums with OpenSSL 3, run: `openssl pkeyutl -verify -pubin -inkey
 * muster-release.pub.pem -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig && sha256sum -c SHA256SUMS`.
 */
export async function signPackages(out: string, keyFile: string): Promise<{ fingerprint: string }> {
  const lines: string[] = [];
  for (const name of (await readdir(out)).filter((one) => /[.](deb|cdx[.]json)$/.test(one)).sort()) {
    const sum = createHash("sha256")
      .update(await readFile(join(out, name)))
      .digest("hex");
    lines.push(`${sum}  ${name}\n`);
  }
  const text = lines.join("");
  const key = await signingKey(keyFile);
  await writeFile(join(out, CHECKSUMS), text);
  await writeFile(join(out, SIGNATURE), sign(null, Buffer.from(text), key));
  const publicKey = createPublicKey(key);
  await writeFile(join(out, PUBLIC_KEY), publicKey.export({ type: "spki", format: "pem" }));
  const der = publicKey.export({ type: "spki", format: "der" });
  return { fingerprint: createHash("sha256").update(der).digest("hex") };
}

/**
 * When the signing key's file is missing, `signingKey` creates a key that only the owner can read. For a release, the file of the signing key must
 * exist already.
 */
async function signingKey(file: string): Promise<KeyObject> {
  const kept = await readFile(file, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  });
  if (kept !== null) {
    const key = createPrivateKey(kept);
    if (key.asymmetricKeyType !== "ed25519") throw new Error(`${file} holds no Ed25519 key`);
    return key;
  }
  const { privateKey } = generateKeyPairSync("ed25519");
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(file, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600, flag: "wx" });
  return privateKey;
}
