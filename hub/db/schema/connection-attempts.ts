import type { NodeId } from "../../../shared/ids.ts";
import { index, integer, pgTable, text, unique, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * `asked`: the hub answered a request. `enrollment_refused`: the hub refused a token. The other kinds ended in the TLS handshake.
 * `certificate_untrusted`: the client does not trust the signer of the hub's certificate.
 * `certificate_not_valid_now`: the certificate is not valid by the client's clock. `handshake_failed`: any other reason.
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
 * Connections to the agent listener without a client certificate, counted by address. Anybody can cause a row, so rows only explain failures to
 * people; no decision depends on them. The number of rows is bounded.
 */
export const connectionAttempts = pgTable(
  "connection_attempts",
  {
    address: text("address").notNull(),
    kind: text("kind", { enum: ATTEMPT_KINDS }).notNull(),
    /** The node of the refused token, if known. The node may have been deleted since. */
    nodeId: uuid("node_id").$type<NodeId>(),
    /** What the newest attempt ended with: the status of the answer, the code of the refusal, or the handshake error. */
    detail: text("detail").notNull(),
    /** Attempts since `first_at`. After an hour without an attempt the count starts again, because the address may belong to another host. */
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
