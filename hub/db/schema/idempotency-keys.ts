import { index, integer, jsonb, pgTable, primaryKey, text } from "../orm.ts";
import { createdAt } from "./columns.ts";

/**
 * Answers to POST requests that carried an Idempotency-Key (decision P4), kept for a day. The hub writes a stored answer in the transaction in which
 * the request takes effect.
 */
export const idempotencyKeys = pgTable(
  "idempotency_keys",
  {
    actor: text("actor").notNull(),
    key: text("key").notNull(),
    /**
     * The SHA-256 of the request's method, path and canonical body, in hex. The hub refuses a different request with an Idempotency-Key that an
     * earlier request has used.
     */
    requestSha256: text("request_sha256").notNull(),
    status: integer("status").notNull(),
    body: jsonb("body").notNull(),
    createdAt: createdAt(),
  },
  (t) => [
    // Retention finds old idempotency keys by the index `idempotency_keys_age_idx`.
    index("idempotency_keys_age_idx").on(t.createdAt),
    primaryKey({ columns: [t.actor, t.key] }),
  ],
);
export type IdempotencyKey = typeof idempotencyKeys.$inferSelect;
