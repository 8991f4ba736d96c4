import type { NodeId } from "../../../shared/ids.ts";
import { index, integer, pgTable, text, unique, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * In `connection_attempts`, the kind `asked` means that the hub answered a client's request. The kind `enrollment_refused` means that the hub refused
 * an enrollment token. The kind `certificate_untrusted` means that the client ended the TLS handshake, because the client does not trust the signer
 * of the hub's certificate. The kind `certificate_not_valid_now` means that the hub's certificate is not valid by the client's clock. The kind
 * `handshake_failed` stands for a failed TLS handshake in which the client named no fault of the hub's certificate.
 */
export const ATTEMPT_KINDS = [
  "asked",
  "enrollment_refused",
  "certificate_untrusted",
  "certificate_not_valid_now",
  "handshake_failed",
] as const;
export type AttemptKind = (typeof ATTEMPT_KINDS)[number];

/**
 * Connections without a client certificate to the hub's listener for agents, counted by the client's address. Anybody can cause a row in
 * `connection_attempts`, so the rows only explain failures to people, and no decision of the hub depends on a row.
 */
export const connectionAttempts = pgTable(
  "connection_attempts",
  {
    address: text("address").notNull(),
    kind: text("kind", { enum: ATTEMPT_KINDS }).notNull(),
    /** The node to which the refused enrollment token belongs, or null if the hub does not know the token. */
    nodeId: uuid("node_id").$type<NodeId>(),
    /** How the newest connection attempt ended: the status of the hub's answer, the code of the hub's refusal, or the error of the TLS handshake. */
    detail: text("detail").notNull(),
    /**
     * After an hour without a connection attempt from an address, the hub counts its attempts from one again, because the address may belong to
     * another host.
     */
    count: integer("count").notNull(),
    firstAt: at("first_at").notNull(),
    lastAt: at("last_at").notNull(),
  },
  (t) => [
    unique("connection_attempts_of_one").on(t.address, t.kind, t.nodeId).nullsNotDistinct(),
    index("connection_attempts_last_idx").on(t.lastAt),
    index("connection_attempts_node_idx").on(t.nodeId),
  ],
);
export type ConnectionAttempt = typeof connectionAttempts.$inferSelect;
