import type { NodeId } from "../../../shared/ids.ts";
import { index, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * Every client certificate that the hub's CA has signed; the revoked certificates are the deny list. In each generation, a node has at most one
 * certificate in use and at most one issued certificate that it has not used yet. Every older certificate of the node's generation is replaced and no
 * longer valid for the node (decision I1).
 */
export const nodeCertificates = pgTable(
  "node_certificates",
  {
    serial: text("serial").primaryKey(),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    generation: integer("generation").notNull(),
    publicKeySha256: text("public_key_sha256").notNull(),
    notBefore: at("not_before").notNull(),
    notAfter: at("not_after").notNull(),
    /**
     * The certificate as PEM, kept until its first use. If the hub's answer with a certificate was lost, the agent repeats its request and gets the
     * stored certificate.
     */
    pem: text("pem"),
    /** The first use of a certificate replaces all certificates of the node that were issued earlier. */
    firstUsedAt: at("first_used_at"),
    replacedAt: at("replaced_at"),
    /** The time when an agent first presented the certificate after the certificate had been replaced. */
    replacedSeenAt: at("replaced_seen_at"),
    revokedAt: at("revoked_at"),
    revokeReason: text("revoke_reason"),
    issuedAt: at("issued_at").notNull().default(sql`now()`),
  },
  (t) => [
    // Retention finds old certificates by the index `node_certificates_age_idx`.
    index("node_certificates_age_idx").on(t.notAfter),
    index("node_certificates_node_idx").on(t.nodeId),
  ],
);
export type NodeCertificate = typeof nodeCertificates.$inferSelect;
