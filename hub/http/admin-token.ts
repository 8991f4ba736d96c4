import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { lockUntilCommit } from "../db/advisory-locks.ts";
import { FIRST_TOKEN, findNamedToken, findTokenHolder, putApiToken } from "../db/queries/api-tokens.ts";
import { recordAudit } from "../db/queries/audit-logs.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import type { InTx, Tx } from "../db/tx.ts";
import { newToken } from "../people/token-text.ts";

const hash = (token: string): string => createHash("sha256").update(token).digest("hex");
/**
 * An operator creates the file with the suffix `.restore` beside the file of the admin token to bring a retired admin token back at the hub's next
 * start.
 */
const restoreFileOf = (file: string): string => `${file}.restore`;

/**
 * The hub's first start creates the admin token in a file that only the file's owner can read; the database holds the token's hash. If the file of
 * the admin token is lost, the hub's next start creates a new admin token, and the old admin token becomes invalid. A retired admin token stays
 * retired, unless an operator has created the file that `restoreFileOf` names.
 */
export async function ensureAdminToken(inTx: InTx, file: string): Promise<void> {
  await inTx(async (tx) => {
    await lockUntilCommit(tx, "admin_token");
    const isRetired = ((await findNamedToken(tx, FIRST_TOKEN))?.revokedAt ?? null) !== null;
    if (isRetired && !(await exists(restoreFileOf(file)))) return forgetAdminToken(file);
    const present = (await readOrEmpty(file)).trim();
    if (!isRetired && present !== "" && (await findTokenHolder(tx, hash(present)))?.name === FIRST_TOKEN) return;
    const token = newToken("first");
    await putApiToken(tx, {
      name: FIRST_TOKEN,
      role: "admin",
      tokenSha256: hash(token),
      lastFour: token.slice(-4),
    });
    if (isRetired) await tellRestored(tx);
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(`${file}.new`, `${token}\n`, { mode: 0o600 });
    await chmod(`${file}.new`, 0o600);
    await rename(`${file}.new`, file);
  });
  await rm(restoreFileOf(file), { force: true });
}

async function tellRestored(tx: Tx): Promise<void> {
  const row = await findNamedToken(tx, FIRST_TOKEN);
  if (row === null) throw new Error("the admin token was stored and cannot be read");
  const { id, name, role } = row;
  const data = { token_id: id, name, role, change: "restored" as const, by: "hub" };
  await recordDomainEvent(tx, { type: "token.changed", subject: `tokens/${id}`, data });
  const reason = "an operator of the hub's computer asked for it";
  const audit = { actor: "hub", role: "none", action: "restoreFirstToken", target: `tokens/${id}`, reason };
  await recordAudit(tx, { ...audit, requestId: null, details: { name } });
}

/** Removes the file of a retired admin token, because by this file the hub would accept the token even without its database. */
export const forgetAdminToken = (file: string): Promise<void> => rm(file, { force: true });

/**
 * True if the given token is the admin token in the hub's own file. By the file of the admin token, the hub recognizes its operator even while the
 * database with the token hashes is unreachable.
 */
export async function isAdminToken(file: string, token: string): Promise<boolean> {
  const present = (await readOrEmpty(file)).trim();
  // `isAdminToken` compares hashes, so the duration of the comparison reveals nothing about the token.
  return present !== "" && hash(present) === hash(token);
}

const exists = (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  );

async function readOrEmpty(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
