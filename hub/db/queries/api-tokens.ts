import type { ApiRole } from "../../../shared/api/roles.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { and, eq, isNull, type SQL } from "../orm.ts";
import { apiTokens } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import type { Reach } from "./reach.ts";

export interface TokenHolder extends Reach {
  readonly tokenId: string;
  readonly name: string;
  readonly role: ApiRole;
}

/** Returns the holder of a token that is valid now; null for an unknown or ended token. */
export const findTokenHolder = (db: Db, tokenSha256: string): Promise<TokenHolder | null> =>
  holderWhere(db, eq(apiTokens.tokenSha256, tokenSha256));

/** Returns the holder of the token with which somebody signed in on the page, as long as the token is valid. */
export const findTokenHolderById = (db: Db, id: string): Promise<TokenHolder | null> =>
  holderWhere(db, eq(apiTokens.id, id));

async function holderWhere(db: Db, which: SQL): Promise<TokenHolder | null> {
  const { id: tokenId, name, role, sites, tenant } = apiTokens;
  const [row] = await db
    .select({ tokenId, name, role, sites, tenant })
    .from(apiTokens)
    .where(and(which, isNull(apiTokens.revokedAt)));
  return row ?? null;
}

export interface NewToken {
  readonly name: string;
  readonly role: ApiRole;
  readonly tokenSha256: string;
  readonly sites?: SiteId[] | null;
  readonly tenant?: string | null;
}

/** When `putApiToken` stores a token, an older token with the same name becomes invalid. */
export async function putApiToken(tx: Tx, { sites = null, tenant = null, ...token }: NewToken): Promise<void> {
  const now = { ...token, sites, tenant };
  await tx
    .insert(apiTokens)
    .values(now)
    .onConflictDoUpdate({ target: apiTokens.name, set: { ...now, revokedAt: null } });
}
