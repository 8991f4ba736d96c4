import type { ApiRole } from "../../../shared/api/roles.ts";
import type { TokenId } from "../../../shared/api/tokens.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { and, asc, count, eq, gt, isNull, ne, or, type SQL, sql } from "../orm.ts";
import { type ApiToken, apiTokens } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import type { Reach } from "./reach.ts";

/** The name of the hub's first token, which is in the file `admin-token` of the state folder. */
export const FIRST_TOKEN = "admin";

export interface TokenHolder extends Reach {
  readonly tokenId: TokenId;
  readonly name: string;
  readonly role: ApiRole;
}

const t = apiTokens;
const isAlive = and(isNull(t.revokedAt), or(isNull(t.expiresAt), gt(t.expiresAt, sql`now()`)));

/** The holder of a valid token. `isStale` says that the stored time of the token's last use is old and must be written again. */
type FoundHolder = TokenHolder & { readonly isStale: boolean };

/** Returns the holder of a token that is valid now; null for an unknown or ended token. */
export function findTokenHolder(db: Db, tokenSha256: string): Promise<FoundHolder | null> {
  const isOld = and(eq(t.previousSha256, tokenSha256), gt(t.previousUntil, sql`now()`));
  return holderWhere(db, or(eq(t.tokenSha256, tokenSha256), isOld));
}

/** Returns the holder of the API token with which somebody signed in to the console, if the token is still valid. */
export async function findTokenHolderById(db: Db, id: string): Promise<TokenHolder | null> {
  const found = await holderWhere(db, sql`${t.id} = ${id}::uuid`);
  if (found === null) return null;
  const { isStale: _, ...holder } = found;
  return holder;
}

async function holderWhere(db: Db, which: SQL | undefined): Promise<FoundHolder | null> {
  const isStale = sql<boolean>`coalesce(${t.lastUsedAt} < now() - interval '1 minute', true)`;
  const [row] = await db
    .select({ tokenId: t.id, name: t.name, role: t.role, sites: t.sites, tenant: t.tenant, isStale })
    .from(t)
    .where(and(which, isAlive));
  return row ?? null;
}

/**
 * Writes the last use of a token. Returns true if the token's previous use was more than an hour ago; false if it was later, for example because
 * another request has just written its use.
 */
export async function touchToken(db: Db, id: TokenId): Promise<boolean> {
  const { rows } = await db.execute<{ rested: boolean }>(sql`
    update api_tokens k set last_used_at = now()
    from (select id, last_used_at from api_tokens where id = ${id} for no key update) was
    where k.id = was.id and coalesce(was.last_used_at < now() - interval '1 minute', true)
    returning coalesce(was.last_used_at < now() - interval '1 hour', true) as rested`);
  return rows[0]?.rested === true;
}

/** Counts the valid admin tokens for the whole hub besides the hub's first token. */
export async function countOtherAdmins(db: Db | Tx): Promise<number> {
  const [row] = await db
    .select({ tokens: count() })
    .from(t)
    .where(and(isAlive, eq(t.role, "admin"), isNull(t.sites), ne(t.name, FIRST_TOKEN)));
  return row?.tokens ?? 0;
}

export interface NewToken {
  readonly name: string;
  readonly role: ApiRole;
  readonly tokenSha256: string;
  readonly lastFour?: string;
  readonly sites?: SiteId[] | null;
  readonly tenant?: string | null;
}

/** When `putApiToken` stores a token, an older token with the same name becomes invalid. */
export async function putApiToken(tx: Tx, { sites = null, tenant = null, ...token }: NewToken): Promise<void> {
  const now = { ...token, sites, tenant };
  await tx
    .insert(t)
    .values(now)
    .onConflictDoUpdate({ target: t.name, set: { ...now, revokedAt: null } });
}

type Expiring = NewToken & { readonly expiresInDays: number };
const inDays = (days: number): SQL<Date> => sql<Date>`now() + make_interval(days => ${days}::int)`;

/** Stores a new token, and returns null if a token already has the name, even a token that has ended. */
export async function insertToken(
  tx: Tx,
  { expiresInDays, ...token }: Expiring & { readonly createdBy: string; readonly knownTo: string[] },
): Promise<ApiToken | null> {
  const [row] = await tx
    .insert(t)
    .values({ ...token, expiresAt: inDays(expiresInDays) })
    .onConflictDoNothing({ target: t.name })
    .returning();
  return row ?? null;
}

export async function readToken(db: Db | Tx, id: TokenId): Promise<ApiToken | null> {
  const [row] = await db.select().from(t).where(eq(t.id, id));
  return row ?? null;
}

export async function findNamedToken(tx: Tx, name: string): Promise<ApiToken | null> {
  const [row] = await tx.select().from(t).where(eq(t.name, name));
  return row ?? null;
}

export async function lockToken(tx: Tx, id: TokenId): Promise<ApiToken | null> {
  const [row] = await tx.select().from(t).where(eq(t.id, id)).for("no key update");
  return row ?? null;
}

export const countTokens = async (tx: Tx): Promise<number> =>
  (await tx.select({ tokens: count() }).from(t))[0]?.tokens ?? 0;

/**
 * Gives a token a new secret. After a rotation, the token's old secret stays valid for the given overlap time, but not beyond the old secret's
 * expiry.
 */
export async function rotateToken(
  tx: Tx,
  id: TokenId,
  to: { tokenSha256: string; lastFour: string; expiresInDays: number; overlapSeconds: number; knownTo: string[] },
): Promise<ApiToken> {
  const overlap = sql`now() + make_interval(secs => ${to.overlapSeconds}::int)`;
  const [row] = await tx
    .update(t)
    .set({
      tokenSha256: to.tokenSha256,
      lastFour: to.lastFour,
      knownTo: to.knownTo,
      previousSha256: sql`${t.tokenSha256}`,
      previousUntil: sql`least(${overlap}, ${t.expiresAt})`,
      expiresAt: inDays(to.expiresInDays),
    })
    .where(eq(t.id, id))
    .returning();
  if (row === undefined) throw new Error(`token ${id} is locked and cannot be rotated`);
  return row;
}

export async function endToken(tx: Tx, id: TokenId): Promise<ApiToken> {
  const [row] = await tx.update(t).set({ revokedAt: sql`now()` }).where(eq(t.id, id)).returning();
  if (row === undefined) throw new Error(`token ${id} is locked and cannot be revoked`);
  return row;
}

/** A caller who is limited to sites sees the tokens that are limited to some of the same sites. */
export const listTokensAfter = (
  db: Db,
  {
    name,
    role,
    after,
    reach,
  }: {
    readonly name: string | undefined;
    readonly role: ApiRole | undefined;
    readonly after: string | null;
    readonly reach: Reach;
  },
  most: number,
): Promise<ApiToken[]> =>
  db
    .select()
    .from(t)
    .where(
      and(
        name === undefined ? undefined : eq(t.name, name),
        role === undefined ? undefined : eq(t.role, role),
        reach.sites === null ? undefined : sql`${t.sites} <@ ${sql.param([...reach.sites])}::uuid[]`,
        reach.tenant === null ? undefined : sql`false`,
        after === null ? undefined : gt(t.name, after),
      ),
    )
    .orderBy(asc(t.name))
    .limit(most);
