import { API_ROLES, ROLES_OF_TENANTS } from "../../../shared/api/roles.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { check, pgTable, sql, text, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";

/** The bearer tokens of operators; the table stores only the hashes of the tokens. */
export const apiTokens = pgTable(
  "api_tokens",
  {
    id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
    name: text("name").notNull().unique(),
    role: text("role", { enum: API_ROLES }).notNull(),
    /** The sites to which the token is limited; null for a token that is valid for all sites and for the whole hub. */
    sites: uuid("sites").array().$type<SiteId[]>(),
    /** The tenant whose allocations the token shows. Only tokens of the roles `tenant` and `repair` have a tenant. */
    tenant: text("tenant"),
    tokenSha256: text("token_sha256").notNull().unique(),
    revokedAt: at("revoked_at"),
    createdAt: createdAt(),
  },
  () => [
    check("api_tokens_role_check", oneOf("role", API_ROLES)),
    check("api_tokens_tenant_check", sql`(${oneOf("role", ROLES_OF_TENANTS)}) = ("tenant" is not null)`),
  ],
);
export type ApiToken = typeof apiTokens.$inferSelect;
