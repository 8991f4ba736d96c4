import type { NodeId } from "../../../shared/ids.ts";
import { eq, sql } from "../orm.ts";
import { type EnrollmentToken, enrollmentTokens } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** Whose the token is; null when it is not known. Tokens are found by their hash, so how long a look-up takes says nothing of the token itself. */
export async function nodeOfToken(db: Db, tokenSha256: string): Promise<NodeId | null> {
  const [found] = await db
    .select({ nodeId: enrollmentTokens.nodeId })
    .from(enrollmentTokens)
    .where(eq(enrollmentTokens.tokenSha256, tokenSha256));
  return found?.nodeId ?? null;
}

/** What a token is worth now; null when it is not known. */
export async function readToken(
  db: Db,
  tokenSha256: string,
): Promise<{ token: EnrollmentToken; expired: boolean } | null> {
  const [found] = await db
    .select({ token: enrollmentTokens, expired: sql<boolean>`${enrollmentTokens.expiresAt} <= now()` })
    .from(enrollmentTokens)
    .where(eq(enrollmentTokens.tokenSha256, tokenSha256));
  return found ?? null;
}

/** Holds the token until the end of the transaction: of two that use it at once, the second sees what the first did. */
export async function lockToken(
  tx: Tx,
  tokenSha256: string,
): Promise<{ token: EnrollmentToken; expired: boolean } | null> {
  const [found] = await tx
    .select({ token: enrollmentTokens, expired: sql<boolean>`${enrollmentTokens.expiresAt} <= now()` })
    .from(enrollmentTokens)
    .where(eq(enrollmentTokens.tokenSha256, tokenSha256))
    .for("update");
  return found ?? null;
}

/** Remembers who used it; the time is that of the first use. */
export async function markTokenUsed(tx: Tx, id: string, keySha256: string): Promise<void> {
  await tx
    .update(enrollmentTokens)
    .set({ usedAt: sql`coalesce(${enrollmentTokens.usedAt}, now())`, usedKeySha256: keySha256 })
    .where(eq(enrollmentTokens.id, id));
}
