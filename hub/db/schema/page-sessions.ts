import { check, index, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { apiTokens } from "./api-tokens.ts";
import { at, createdAt } from "./columns.ts";

/**
 * The browser sessions of people who use the operators' console. A session belongs to an API token, or to a person whom the identity provider has
 * signed in. The role of a session is in no column: each request finds the role by the token, or by the claims and the rules of the settings.
 */
export const pageSessions = pgTable(
  "page_sessions",
  {
    id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
    /** The hash of the value of the session's cookie. The cookie's value is in no table. */
    idSha256: text("id_sha256").notNull().unique(),
    tokenId: uuid("token_id").references(() => apiTokens.id, { onDelete: "cascade" }),
    /** The permanent subject id by which the identity provider knows the person, and which no other person ever gets. */
    subject: text("subject"),
    /** The name of the person or of the token at the sign-in. */
    name: text("name").notNull(),
    /** The claims from which the role rules find the person's role, as the identity provider last sent them. */
    claims: jsonb("claims").$type<Readonly<Record<string, unknown>>>(),
    /** The refresh token, sealed by a key that the hub can make only from the session's cookie. */
    refreshSealed: text("refresh_sealed"),
    claimsAt: at("claims_at").notNull().default(sql`now()`),
    /**
     * The time at which a hub last asked the identity provider for new claims about the session's person. No two hubs or requests ask the identity
     * provider for the claims of one session at once.
     */
    refreshTriedAt: at("refresh_tried_at").notNull().default(sql`now()`),
    /** The hash of the OAuth `state` of the sign-in at the identity provider, so that one sign-in makes only one session. */
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
