import { API_ROLES } from "../../../shared/api/roles.ts";
import { check, pgTable, sql, text, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";

/** The bearer tokens of operators; the table stores only the hashes of the tokens. */
export const apiTokens = pgTable(
  "api_tokens",
  {
    id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
    name: text("name").notNull().unique(),
    role: text("role", { enum: API_ROLES }).notNull(),
    tokenSha256: text("token_sha256").notNull().unique(),
    revokedAt: at("revoked_at"),
    createdAt: createdAt(),
  },
  () => [check("api_tokens_role_check", oneOf("role", API_ROLES))],
);
export type ApiToken = typeof apiTokens.$inferSelect;
