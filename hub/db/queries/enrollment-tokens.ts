import type { NodeId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, isNull, type SQL, sql } from "../orm.ts";
import { type EnrollmentToken, enrollmentTokens } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface TokenRequest {
  readonly nodeId: NodeId;
  readonly workflowId: WorkflowId | null;
  readonly generation: number;
  readonly maasSystemId: string | null;
  /** Lower case; when any is given, the host must have one of them. */
  readonly boundMacs: readonly string[];
  readonly ttlSeconds: number;
}

/** Stores a token by its hash; it ends `ttlSeconds` from now. */
export async function insertEnrollmentToken(
  tx: Tx,
  { ttlSeconds, boundMacs, ...token }: TokenRequest & { readonly tokenSha256: string },
): Promise<Pick<EnrollmentToken, "id" | "expiresAt">> {
  const [row] = await tx
    .insert(enrollmentTokens)
    .values({
      ...token,
      boundMacs: [...boundMacs],
      expiresAt: sql`now() + make_interval(secs => ${ttlSeconds})`,
    })
    .returning({ id: enrollmentTokens.id, expiresAt: enrollmentTokens.expiresAt });
  if (row === undefined) throw new Error("the enrollment token was not stored");
  return row;
}

export async function revokeEnrollmentTokens(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx
    .update(enrollmentTokens)
    .set({ revokedAt: sql`now()` })
    .where(
      and(eq(enrollmentTokens.nodeId, nodeId), isNull(enrollmentTokens.usedAt), isNull(enrollmentTokens.revokedAt)),
    );
}

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

/**
 * Gives an expired, unused token of the generation another life. The host carries the token in its user-data already, so a new one could
 * not reach it; only the end of the old one can be moved. True when one was extended.
 */
export async function extendExpiredToken(
  tx: Tx,
  nodeId: NodeId,
  generation: number,
  ttlSeconds: number,
): Promise<boolean> {
  const rows = await tx
    .update(enrollmentTokens)
    .set({ expiresAt: sql`now() + make_interval(secs => ${ttlSeconds})` })
    .where(unusedToken(nodeId, generation, sql`${enrollmentTokens.expiresAt} <= now()`))
    .returning({ id: enrollmentTokens.id });
  return rows.length > 0;
}

export async function hasExpiredToken(db: Db, nodeId: NodeId, generation: number): Promise<boolean> {
  const rows = await db
    .select({ id: enrollmentTokens.id })
    .from(enrollmentTokens)
    .where(unusedToken(nodeId, generation, sql`${enrollmentTokens.expiresAt} <= now()`));
  return rows.length > 0;
}

const unusedToken = (nodeId: NodeId, generation: number, expired: SQL) =>
  and(
    eq(enrollmentTokens.nodeId, nodeId),
    eq(enrollmentTokens.generation, generation),
    isNull(enrollmentTokens.usedAt),
    isNull(enrollmentTokens.revokedAt),
    expired,
  );
