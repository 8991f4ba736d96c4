import { createHash, randomBytes } from "node:crypto";
import { chmod, readFile, rename, writeFile } from "node:fs/promises";
import { findApiToken, putApiToken } from "../db/queries/api-requests.ts";
import type { InTx } from "../db/tx.ts";

const NAME = "admin";
const hash = (token: string): string => createHash("sha256").update(token).digest("hex");

/**
 * The first start makes the admin token, in a file that only the owner reads; the database holds its hash. A file that is lost is made anew and
 * the old token is void then.
 */
export async function ensureAdminToken(inTx: InTx, file: string): Promise<void> {
  const present = await readFile(file, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  });
  await inTx(async (tx) => {
    if (present.trim() !== "" && (await findApiToken(tx, hash(present.trim()))) !== null) return;
    const token = randomBytes(32).toString("base64url");
    await putApiToken(tx, { name: NAME, role: "admin", tokenSha256: hash(token) });
    await writeFile(`${file}.new`, `${token}\n`, { mode: 0o600 });
    await chmod(`${file}.new`, 0o600);
    await rename(`${file}.new`, file);
  });
}
