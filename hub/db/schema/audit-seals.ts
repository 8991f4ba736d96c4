import { bigint, pgTable, sql, text, unique } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The place of each audit entry in the hash chain. A hub adds the seal of an audit entry, which is its place in the hash chain, about a second after
 * the entry, so that no action of an operator waits for the hash chain (decision L1). The seals of audit entries are in a table of their own, because
 * nobody changes the row of an audit entry.
 */
export const auditSeals = pgTable(
  "audit_seals",
  {
    sequence: bigint("sequence", { mode: "number" }).primaryKey(),
    auditId: bigint("audit_id", { mode: "bigint" }).notNull(),
    previousSha256: text("previous_sha256").notNull(),
    entrySha256: text("entry_sha256").notNull(),
    sealedAt: at("sealed_at").notNull().default(sql`now()`),
  },
  (t) => [unique("audit_seals_audit_key").on(t.auditId)],
);
export type AuditSeal = typeof auditSeals.$inferSelect;
