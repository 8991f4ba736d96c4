import { bigserial, index, jsonb, pgTable, sql, text } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * An audit entry says who did what through the API, and with which outcome (lifecycle 4.12). The hub writes an audit entry in the transaction of the
 * audited action, so no action succeeds without its audit entry.
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
    // Retention finds old audit entries by the index `audit_logs_age_idx`.
    index("audit_logs_age_idx").on(t.occurredAt),
    index("audit_logs_target_idx").on(t.target, t.id),
  ],
);
export type AuditLog = typeof auditLogs.$inferSelect;
