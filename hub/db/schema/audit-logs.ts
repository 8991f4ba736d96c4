import { AUDIT_OUTCOMES, SIGN_IN_WAYS } from "../../../shared/audit-chain.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { bigserial, check, index, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/**
 * An audit entry says who did what through the API, and with which outcome (lifecycle 4.12). The hub writes an audit entry in the transaction of the
 * audited action, so no action succeeds without its audit entry. Triggers of the table refuse every change of an entry, and every removal but that by
 * the function `muster_prune_audit` (decision L1).
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
    /** How the actor signed in; null in audit entries of a hub that did not know the column yet. */
    via: text("via", { enum: SIGN_IN_WAYS }),
    /** The address from which the request came; null if the hub itself acted. */
    address: text("address"),
    outcome: text("outcome", { enum: AUDIT_OUTCOMES }).notNull().default("done"),
    /** The error code of a refused request. */
    errorCode: text("error_code"),
    /** The site of the audit entry's target, if the target belongs to a site. */
    siteId: uuid("site_id").$type<SiteId>(),
    /** The hash of the audit entry's content, written with the entry; null in entries of a hub that did not know the column yet. */
    contentSha256: text("content_sha256"),
    /** The part of the audit entry's target before its first slash, for example `nodes`. */
    objectKind: text("object_kind").generatedAlwaysAs(sql`split_part("target", '/', 1)`),
  },
  (t) => [
    // Retention finds old audit entries by the index `audit_logs_age_idx`.
    index("audit_logs_age_idx").on(t.occurredAt),
    index("audit_logs_target_idx").on(t.target, t.id),
    index("audit_logs_actor_idx").on(t.actor, t.id),
    index("audit_logs_action_idx").on(t.action, t.id),
    index("audit_logs_site_idx").on(t.siteId, t.id),
    index("audit_logs_request_idx").on(t.requestId),
    index("audit_logs_kind_idx").on(t.objectKind, t.id),
    check("audit_logs_via_check", oneOf("via", SIGN_IN_WAYS)),
    check("audit_logs_outcome_check", oneOf("outcome", AUDIT_OUTCOMES)),
  ],
);
export type AuditLog = typeof auditLogs.$inferSelect;
