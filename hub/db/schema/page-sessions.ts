import { check, index, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { apiTokens } from "./api-tokens.ts";
import { at, createdAt } from "./columns.ts";

/**
 * The sessions of browsers on the operators' page. A session belongs to an API token, or to a person whom the provider has signed in. The role of a
 * session is in no column: each request finds the role by the token, or by the claims and the rules of the settings.
 */
export const pageSessions = pgTable(
  "page_sessions",
  {
    id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
    /** The hash of the value of the session's cookie. The cookie's value is in no table. */
    idSha256: text("id_sha256").notNull().unique(),
    tokenId: uuid("token_id").references(() => apiTokens.id, { onDelete: "cascade" }),
    /** The provider's lasting name of the person, of which another person never gets the same one. */
    subject: text("subject"),
    /** The name of the person or of the token at the sign-in. */
    name: text("name").notNull(),
    /** The claims that the rules of roles read, as the provider last sent them. */
    claims: jsonb("claims").$type<Readonly<Record<string, unknown>>>(),
    /** The refresh token, sealed by a key that the hub can make only from the session's cookie. */
    refreshSealed: text("refresh_sealed"),
    claimsAt: at("claims_at").notNull().default(sql`now()`),
    /** The time at which a hub last asked the provider for new claims. Two hubs or requests never ask at once. */
    refreshTriedAt: at("refresh_tried_at").notNull().default(sql`now()`),
    /** The hash of the state of the sign-in at the provider, so that a sign-in makes one session only. */
    stateSha256: text("state_sha256").unique(),
    address: text("address").notNull(),
    userAgent: text("user_agent").notNull(),
    createdAt: createdAt(),
    lastUsedAt: at("last_used_at").notNull().default(sql`now()`),
    expiresAt: at("expires_at").notNull(),
    endedAt: at("ended_at"),
  },
  (t) => [
    check("page_sessions_owner_check", sql`("token_id" is null) <> ("subject" is null)`),
    index("page_sessions_token_idx").on(t.tokenId),
    index("page_sessions_subject_idx").on(t.subject),
    // Retention finds old sessions by the index `page_sessions_age_idx`.
    index("page_sessions_age_idx").on(t.expiresAt),
  ],
);
export type PageSession = typeof pageSessions.$inferSelect;
