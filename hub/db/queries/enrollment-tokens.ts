import type { NodeId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, isNull, type SQL, sql } from "../orm.ts";
import { type EnrollmentToken, enrollmentTokens } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface TokenRequest {
  readonly nodeId: NodeId;
  readonly workflowId: WorkflowId | null;
  readonly generation: number;
  readonly maasSystemId: string | null;
  /**
   * The MAC addresses, in lower case, to which the enrollment token is bound. A host that enrolls with a token that is bound to MAC addresses must
   * have one of these addresses.
   */
  readonly boundMacs: readonly string[];
  readonly ttlSeconds: number;
}

/** Stores the hash of an enrollment token that expires `ttlSeconds` from now. */
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

/**
 * Returns the node of an enrollment token, or null if the token is unknown. The database finds an enrollment token by its hash, so the duration of
 * the search reveals nothing about the token.
 */
export async function nodeOfToken(db: Db, tokenSha256: string): Promise<NodeId | null> {
  const [found] = await db
    .select({ nodeId: enrollmentTokens.nodeId })
    .from(enrollmentTokens)
    .where(eq(enrollmentTokens.tokenSha256, tokenSha256));
  return found?.nodeId ?? null;
}

/** Returns the row of an enrollment token, and whether the token has expired. `readToken` returns null if the enrollment token is unknown. */
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

/**
 * Locks an enrollment token until the transaction ends. If two hosts use an enrollment token at the same time, the second use waits and then sees the
 * result of the first use.
 */
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

/** Records which key the host used with the enrollment token. If a host uses its enrollment token again, the time of the first use stays. */
export async function markTokenUsed(tx: Tx, id: string, keySha256: string): Promise<void> {
  await tx
    .update(enrollmentTokens)
    .set({ usedAt: sql`coalesce(${enrollmentTokens.usedAt}, now())`, usedKeySha256: keySha256 })
    .where(eq(enrollmentTokens.id, id));
}

/**
 * Extends the node's expired, unused enrollment token of the given generation. The host has the expired token in its user-data already, so a new
 * token could not reach the host. `extendExpiredToken` returns true if it extended a token.
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
