import type { NodeId } from "../../../shared/ids.ts";
import { index, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * Every client certificate that the hub's CA signed; a revoked one is the deny list. Of a node's generation at most one is in use and at most one is
 * given out and not used yet; all others are replaced (decision I1).
 */
export const nodeCertificates = pgTable(
  "node_certificates",
  {
    serial: text("serial").primaryKey(),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    generation: integer("generation").notNull(),
    /** Hex SHA-256 of the public key's SPKI. */
    publicKeySha256: text("public_key_sha256").notNull(),
    notBefore: at("not_before").notNull(),
    notAfter: at("not_after").notNull(),
    /** Kept until it is first used: whoever asks again, because the answer was lost, is given the same one. */
    pem: text("pem"),
    /** From then on it ends all that were issued before it. */
    firstUsedAt: at("first_used_at"),
    replacedAt: at("replaced_at"),
    /** When it was first presented after it had been replaced. */
    replacedSeenAt: at("replaced_seen_at"),
    revokedAt: at("revoked_at"),
    revokeReason: text("revoke_reason"),
    issuedAt: at("issued_at").notNull().default(sql`now()`),
  },
  (t) => [
    // Retention goes by it.
    index("node_certificates_age_idx").on(t.notAfter),
    index("node_certificates_node_idx").on(t.nodeId),
  ],
);
export type NodeCertificate = typeof nodeCertificates.$inferSelect;
