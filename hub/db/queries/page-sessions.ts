import { and, asc, desc, eq, isNotNull, isNull, type SQL, sql } from "../orm.ts";
import { type PageSession, pageSessions } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/**
 * The life of a page's session. A session ends when nobody has used it for `idleHours`, and `absoluteHours` after the sign-in at the latest.
 * `LAST_USE_MINUTES` bounds how often the hub writes the time of the last use.
 */
const SESSION_LIFE = { idleHours: 8, absoluteHours: 24 } as const;
const LAST_USE_MINUTES = 1;
/**
 * The hub asks the identity provider for a person's present claims when the session's claims are older than `CLAIMS_MINUTES`, and after a failure
 * once in `RETRY_MINUTES`.
 */
const CLAIMS_MINUTES = 15;
const RETRY_MINUTES = 1;
/**
 * The largest number of sessions of one person or token at once. A further sign-in of a person or token with `MOST_SESSIONS` sessions ends the oldest
 * session.
 */
const MOST_SESSIONS = 50;

const hours = (count: number): SQL => sql`make_interval(hours => ${count}::int)`;
const minutes = (count: number): SQL => sql`make_interval(mins => ${count}::int)`;
const { idleHours, absoluteHours } = SESSION_LIFE;

const isLive = and(
  isNull(pageSessions.endedAt),
  sql`${pageSessions.expiresAt} > now()`,
  sql`${pageSessions.lastUsedAt} > now() - ${hours(idleHours)}`,
);

/** The owner of sessions: a token or a person. */
export type SessionOwner = { readonly tokenId: string } | { readonly subject: string };
const isOf = (owner: SessionOwner): SQL =>
  "tokenId" in owner ? eq(pageSessions.tokenId, owner.tokenId) : eq(pageSessions.subject, owner.subject);

export interface NewSession {
  readonly idSha256: string;
  readonly owner: SessionOwner;
  readonly name: string;
  readonly claims: PageSession["claims"];
  readonly refreshSealed: string | null;
  readonly stateSha256: string | null;
  readonly address: string;
  readonly userAgent: string;
}

/** Returns the new session's id, or null if the same sign-in at the provider has made a session before. */
export async function startSession(tx: Tx, { owner, ...session }: NewSession): Promise<string | null> {
  const [row] = await tx
    .insert(pageSessions)
    .values({ ...session, ...owner, expiresAt: sql`now() + ${hours(absoluteHours)}` })
    .onConflictDoNothing()
    .returning({ id: pageSessions.id });
  if (row === undefined) return null;
  const oldest = tx
    .select({ id: pageSessions.id })
    .from(pageSessions)
    .where(and(isOf(owner), isLive))
    .orderBy(desc(pageSessions.createdAt), asc(pageSessions.id))
    .offset(MOST_SESSIONS);
  await endWhere(tx, sql`${pageSessions.id} in ${oldest}`);
  return row.id;
}

export interface LiveSession extends Pick<PageSession, "id" | "tokenId" | "subject" | "name" | "claims"> {
  readonly refreshSealed: string | null;
  /** True if the session's claims are so old that the hub should ask the identity provider for new ones. */
  readonly claimsAreOld: boolean;
}

/**
 * Returns the session with the given hash if it has not ended. Records the time of the session's last use, unless the argument `look` says that the
 * caller reads the session without using it.
 */
export async function findSession(
  db: Db,
  idSha256: string,
  { look }: { readonly look: boolean },
): Promise<LiveSession | null> {
  const { id, tokenId, subject, name, claims, refreshSealed } = pageSessions;
  const old = sql<boolean>`${isNotNull(pageSessions.refreshSealed)}
    and ${pageSessions.claimsAt} < now() - ${minutes(CLAIMS_MINUTES)}
    and ${pageSessions.refreshTriedAt} < now() - ${minutes(RETRY_MINUTES)}`;
  const unused = sql<boolean>`${pageSessions.lastUsedAt} < now() - ${minutes(LAST_USE_MINUTES)}`;
  const [row] = await db
    .select({ id, tokenId, subject, name, claims, refreshSealed, claimsAreOld: old, unused })
    .from(pageSessions)
    .where(and(eq(pageSessions.idSha256, idSha256), isLive));
  if (row === undefined) return null;
  const { unused: isUnused, ...session } = row;
  if (isUnused && !look)
    await db
      .update(pageSessions)
      .set({ lastUsedAt: sql`now()` })
      .where(and(eq(id, session.id), isLive));
  return session;
}

/** True for exactly one of several requests that find the claims of a session old, so that only this request asks the provider. */
export async function takeRefresh(db: Db, sessionId: string): Promise<boolean> {
  const { id, refreshTriedAt } = pageSessions;
  const taken = await db
    .update(pageSessions)
    .set({ refreshTriedAt: sql`now()` })
    .where(and(eq(id, sessionId), sql`${refreshTriedAt} < now() - ${minutes(RETRY_MINUTES)}`))
    .returning({ id });
  return taken.length > 0;
}

export async function putClaims(
  db: Db,
  sessionId: string,
  { claims, refreshSealed }: { readonly claims: PageSession["claims"]; readonly refreshSealed: string | null },
): Promise<void> {
  await db
    .update(pageSessions)
    .set({ claims, refreshSealed, claimsAt: sql`now()` })
    .where(eq(pageSessions.id, sessionId));
}

/** Ends the sessions that match the SQL conditions, and returns their ids. An ended session keeps no refresh token. */
async function endWhere(db: Db | Tx, ...conditions: (SQL | undefined)[]): Promise<string[]> {
  const rows = await db
    .update(pageSessions)
    .set({ endedAt: sql`now()`, refreshSealed: null })
    .where(and(isNull(pageSessions.endedAt), ...conditions))
    .returning({ id: pageSessions.id });
  return rows.map(({ id }) => id);
}

/** Returns the newest claims of a person in a session that has not ended; null if the person has no such session. */
export async function newestClaims(db: Db, subject: string): Promise<NonNullable<PageSession["claims"]> | null> {
  const [row] = await db
    .select({ claims: pageSessions.claims })
    .from(pageSessions)
    .where(and(eq(pageSessions.subject, subject), isLive, isNotNull(pageSessions.claims)))
    .orderBy(desc(pageSessions.claimsAt))
    .limit(1);
  return row?.claims ?? null;
}

export const endSession = (db: Db | Tx, id: string): Promise<string[]> => endWhere(db, eq(pageSessions.id, id));
export const endSessionsOf = (db: Db | Tx, owner: SessionOwner): Promise<string[]> => endWhere(db, isOf(owner));
export const endCookie = (db: Db | Tx, idSha256: string): Promise<string[]> =>
  endWhere(db, eq(pageSessions.idSha256, idSha256));

export type ListedSession = Pick<
  PageSession,
  "id" | "tokenId" | "subject" | "name" | "address" | "userAgent" | "createdAt" | "lastUsedAt" | "expiresAt"
> & { readonly at: string };

/** Lists the live sessions, the newest first, after the session that the cursor names. */
export async function listSessions(
  db: Db,
  before: readonly [string, string] | null,
  limit: number,
): Promise<ListedSession[]> {
  const { id, tokenId, subject, name, address, userAgent, createdAt, lastUsedAt, expiresAt } = pageSessions;
  const after =
    before === null ? undefined : sql`(${createdAt}, ${id}) < (${before[0]}::timestamptz, ${before[1]}::uuid)`;
  const at = sql<string>`${createdAt}::text`;
  return db
    .select({ id, tokenId, subject, name, address, userAgent, createdAt, lastUsedAt, expiresAt, at })
    .from(pageSessions)
    .where(and(isLive, after))
    .orderBy(desc(createdAt), desc(id))
    .limit(limit);
}
