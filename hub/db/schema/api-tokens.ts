import { API_ROLES, ROLES_OF_TENANTS } from "../../../shared/api/roles.ts";
import type { TokenId } from "../../../shared/api/tokens.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { check, pgTable, sql, text, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";

/** The bearer tokens of operators and programs; the table stores only the hashes of the tokens. */
export const apiTokens = pgTable(
  "api_tokens",
  {
    id: uuid("id").$type<TokenId>().primaryKey().default(sql`gen_random_uuid()`),
    name: text("name").notNull().unique(),
    role: text("role", { enum: API_ROLES }).notNull(),
    /** The sites to which the token is limited; null for a token that is valid for all sites and for the whole hub. */
    sites: uuid("sites").array().$type<SiteId[]>(),
    /** The tenant whose allocations the token shows. Only tokens of the roles `tenant` and `repair` have a tenant. */
    tenant: text("tenant"),
    tokenSha256: text("token_sha256").notNull().unique(),
    /** The last four characters of the token, by which a person recognizes it; null for a token of an older version. */
    lastFour: text("last_four"),
    /** After a rotation, the hash of the old token, which is valid until `previous_until`. */
    previousSha256: text("previous_sha256").unique(),
    previousUntil: at("previous_until"),
    createdBy: text("created_by"),
    /**
     * Everybody who has seen the secret of the token and so may be its holder: the token's creator, and who has rotated it (decision I11). The list
     * `known_to` is empty for the first admin token and for a token that a hub of an older version made. Nobody knows who holds a token with an empty
     * `known_to`, so anybody counts as its holder.
     */
    knownTo: text("known_to").array().notNull().default(sql`'{}'`),
    /** The time at which the token expires; null only for the hub's first token and for tokens of an older version, which do not expire. */
    expiresAt: at("expires_at"),
    /** The hub writes the last use of a token at most once a minute. */
    lastUsedAt: at("last_used_at"),
    revokedAt: at("revoked_at"),
    createdAt: createdAt(),
  },
  () => [
    check("api_tokens_role_check", oneOf("role", API_ROLES)),
    check("api_tokens_tenant_check", sql`(${oneOf("role", ROLES_OF_TENANTS)}) = ("tenant" is not null)`),
  ],
);
export type ApiToken = typeof apiTokens.$inferSelect;
