import type { NodeId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, isNull, type SQL, sql } from "../orm.ts";
import { type EnrollmentToken, enrollmentTokens } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";

export interface TokenRequest {
  readonly nodeId: NodeId;
  readonly workflowId: WorkflowId | null;
  readonly generation: number;
  readonly maasSystemId: string | null;
  /** The MAC addresses, in lower case, of which the host must have one to enroll with the token. */
  readonly boundMacs: readonly string[];
  readonly ttlSeconds: number;
}

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

/** The database finds an enrollment token by its hash, so the duration of the search reveals nothing about the token. */
export async function nodeOfToken(db: Db, tokenSha256: string): Promise<NodeId | null> {
  const [found] = await db
    .select({ nodeId: enrollmentTokens.nodeId })
    .from(enrollmentTokens)
    .where(eq(enrollmentTokens.tokenSha256, tokenSha256));
  return found?.nodeId ?? null;
}

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

/** If two hosts use one enrollment token at once, the second use waits for the first use and sees its result. */
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

/** Records the key with which the host used the enrollment token, and keeps the time of the token's first use. */
export async function markTokenUsed(tx: Tx, id: string, keySha256: string): Promise<void> {
  await tx
    .update(enrollmentTokens)
    .set({ usedAt: sql`coalesce(${enrollmentTokens.usedAt}, now())`, usedKeySha256: keySha256 })
    .where(eq(enrollmentTokens.id, id));
}

/** Records a use of all unused tokens of the node's generation, because a host with a certificate of the generation has used one of them. */
export async function markTokensUsed(tx: Tx, nodeId: NodeId, generation: number, keySha256: string): Promise<void> {
  await tx
    .update(enrollmentTokens)
    .set({ usedAt: sql`now()`, usedKeySha256: keySha256 })
    .where(unusedToken(nodeId, generation));
}

/** True if the node's generation has enrollment tokens, and all of them were made after `since`. */
export async function areTokensSince(tx: Tx, nodeId: NodeId, generation: number, since: Date): Promise<boolean> {
  const [row] = await tx
    .select({ first: sql<Date | null>`min(${enrollmentTokens.createdAt})`.mapWith(enrollmentTokens.createdAt) })
    .from(enrollmentTokens)
    .where(and(eq(enrollmentTokens.nodeId, nodeId), eq(enrollmentTokens.generation, generation)));
  return row?.first != null && row.first > since;
}

/**
 * Extends the node's expired, unused enrollment token and returns true, or returns false if the node has no such token. The hub extends an expired
 * enrollment token because a new token could not reach the host: the host's user-data contains the old token.
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

const unusedToken = (nodeId: NodeId, generation: number, expired?: SQL) =>
  and(
    eq(enrollmentTokens.nodeId, nodeId),
    eq(enrollmentTokens.generation, generation),
    isNull(enrollmentTokens.usedAt),
    isNull(enrollmentTokens.revokedAt),
    expired,
  );

export interface IssuedToken {
  readonly nodeId: NodeId;
  readonly tokenSha256: string;
  readonly maasSystemId: string;
  readonly boundMacs: readonly string[];
}

/**
 * Replaces the unused enrollment tokens of many nodes by new ones of the nodes' present generations, with a fixed number of statements. The caller has
 * locked the nodes.
 */
export async function replaceEnrollmentTokens(
  tx: Tx,
  tokens: readonly IssuedToken[],
  ttlSeconds: number,
): Promise<Date> {
  const nodeIds = sql`${sql.param(tokens.map(({ nodeId }) => nodeId))}::uuid[]`;
  await tx.execute(sql`
    update enrollment_tokens set revoked_at = now()
    where node_id = any(${nodeIds}) and used_at is null and revoked_at is null`);
  const rows = tokens.map((one) => ({
    node_id: one.nodeId,
    sha256: one.tokenSha256,
    system_id: one.maasSystemId,
    macs: one.boundMacs,
  }));
  await tx.execute(sql`
    insert into enrollment_tokens (token_sha256, node_id, generation, maas_system_id, bound_macs, expires_at)
    select given.sha256, n.id, n.generation, given.system_id, given.macs, now() + make_interval(secs => ${ttlSeconds})
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given(node_id uuid, sha256 text, system_id text, macs text[])
    join nodes n on n.id = given.node_id`);
  const { rows: times } = await tx.execute<{ at: string }>(
    sql`select (now() + make_interval(secs => ${ttlSeconds}))::text as at`,
  );
  return toDate(times[0]?.at ?? "");
}
