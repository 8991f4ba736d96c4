import type { NodeId, WorkflowId } from "../../../shared/ids.ts";
import { RECORD_VERDICTS, TRUST_LEVELS } from "../../../shared/sanitization-record.ts";
import { boolean, check, index, integer, pgTable, sql, text, unique, uuid } from "../orm.ts";
import { createdAt, oneOf } from "./columns.ts";

/**
 * The sanitization records of cleanings between two tenants, and of tenants' uses that ended without a cleaning (architecture 14.5, decision C1).
 * Triggers of the table `sanitization_records` refuse to change or remove a row, whoever asks. No column is a foreign key, because a sanitization
 * record outlives its node, its allocation and its operation.
 */
export const sanitizationRecords = pgTable(
  "sanitization_records",
  {
    recordId: uuid("record_id").primaryKey(),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    sequence: integer("sequence").notNull(),
    hostname: text("hostname").notNull(),
    allocationId: uuid("allocation_id"),
    tenant: text("tenant"),
    decommissionId: uuid("decommission_id").$type<WorkflowId>().notNull(),
    mode: text("mode").notNull(),
    trust: text("trust", { enum: TRUST_LEVELS }).notNull(),
    verdict: text("verdict", { enum: RECORD_VERDICTS }).notNull(),
    /**
     * The sanitization record's canonical JSON, which the hub and, if `signed_by_agent` is true, the agent have signed. The columns from `hostname`
     * to `verdict` repeat parts of the record's canonical JSON, so that the API can filter by these parts.
     */
    text: text("text").notNull(),
    recordSha256: text("record_sha256").notNull(),
    signedByAgent: boolean("signed_by_agent").notNull(),
    agentSignature: text("agent_signature"),
    agentCertificatePem: text("agent_certificate_pem"),
    /**
     * The canonical JSON of the hub's countersignature of the sanitization record, signed with the hub's order key; `hub_signature` holds the
     * signature in base64.
     */
    countersignature: text("countersignature").notNull(),
    hubSignature: text("hub_signature").notNull(),
    orderKey: text("order_key").notNull(),
    createdAt: createdAt(),
  },
  (t) => [
    unique("sanitization_records_chain_key").on(t.nodeId, t.sequence),
    check("sanitization_records_trust_check", oneOf("trust", TRUST_LEVELS)),
    check("sanitization_records_verdict_check", oneOf("verdict", RECORD_VERDICTS)),
    check(
      "sanitization_records_signed_check",
      sql`"signed_by_agent" = ("agent_signature" is not null) and "signed_by_agent" = ("agent_certificate_pem" is not null)`,
    ),
    check("sanitization_records_unsigned_check", sql`"signed_by_agent" or "verdict" <> 'clean'`),
    index("sanitization_records_created_idx").on(t.createdAt, t.recordId),
    index("sanitization_records_allocation_idx").on(t.allocationId),
  ],
);
export type SanitizationRecordRow = typeof sanitizationRecords.$inferSelect;
