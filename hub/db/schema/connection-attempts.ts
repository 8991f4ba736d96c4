import type { NodeId } from "../../../shared/ids.ts";
import { index, integer, pgTable, text, unique, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * `asked`: a request was answered. `enrollment_refused`: a token was not taken. The others end in the TLS handshake: the client does not trust who signed
 * the hub's certificate; finds it not valid at the time of its own clock; or went away for another reason.
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
 * What the agent listener saw of clients that have shown no certificate, summed up by their address. Anybody can cause a row, so they are evidence for
 * people, and nothing but the words of a failure rests on them. Their number is bounded.
 */
export const connectionAttempts = pgTable(
  "connection_attempts",
  {
    address: text("address").notNull(),
    kind: text("kind", { enum: ATTEMPT_KINDS }).notNull(),
    /** Whose token was refused, where it is known; the node may be gone. */
    nodeId: uuid("node_id").$type<NodeId>(),
    /** Of the last one: the answer's status, the refusal's code, or the handshake's error. */
    detail: text("detail").notNull(),
    /** Since the first, which is that after the last pause of an hour: an address may be another host's by then. */
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
