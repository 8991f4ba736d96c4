import { bigserial, index, jsonb, pgTable, sql, text } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * Who did what by API, with the outcome (lifecycle 4.12). An audit entry is written in the transaction of its action, so an action without an audit
 * entry fails.
 */
export const auditLogs = pgTable(
  "audit_logs",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    actor: text("actor").notNull(),
    role: text("role").notNull(),
    action: text("action").notNull(),
    target: text("target").notNull(),
    reason: text("reason"),
    requestId: text("request_id"),
    details: jsonb("details").notNull().default({}),
    occurredAt: at("occurred_at").notNull().default(sql`now()`),
  },
  (t) => [
    // Retention finds old audit entries by this index.
    index("audit_logs_age_idx").on(t.occurredAt),
    index("audit_logs_target_idx").on(t.target, t.id),
  ],
);
export type AuditLog = typeof auditLogs.$inferSelect;
