import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { lockUntilCommit } from "../db/advisory-locks.ts";
import { findTokenHolder, putApiToken } from "../db/queries/api-tokens.ts";
import type { InTx } from "../db/tx.ts";

const NAME = "admin";
const hash = (token: string): string => createHash("sha256").update(token).digest("hex");

/**
 * The hub's first start creates the admin token in a file that only the file's owner can read; the database holds the token's hash. If the token's
 * file is lost, the hub's next start creates a new admin token, and the old admin token becomes invalid.
 */
export async function ensureAdminToken(inTx: InTx, file: string): Promise<void> {
  await inTx(async (tx) => {
    await lockUntilCommit(tx, "admin_token");
    const present = (await readOrEmpty(file)).trim();
    if (present !== "" && (await findTokenHolder(tx, hash(present))) !== null) return;
    const token = randomBytes(32).toString("base64url");
    await putApiToken(tx, { name: NAME, role: "admin", tokenSha256: hash(token) });
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(`${file}.new`, `${token}\n`, { mode: 0o600 });
    await chmod(`${file}.new`, 0o600);
    await rename(`${file}.new`, file);
  });
}

/**
 * True if the given token is the admin token in the hub's own file. By the file of the admin token, the hub recognizes its operator even while the
 * database with the token hashes is unreachable.
 */
export async function isAdminToken(file: string, token: string): Promise<boolean> {
  const present = (await readOrEmpty(file)).trim();
  // `isAdminToken` compares hashes, so the duration of the comparison reveals nothing about the token.
  return present !== "" && hash(present) === hash(token);
}

async function readOrEmpty(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
