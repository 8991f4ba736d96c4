import type { NamedNode, Signal } from "../../../shared/api/signals.ts";
import { STORED_OUTCOMES } from "../../../shared/api/signals.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { check, index, integer, jsonb, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/**
 * The readiness signals from external systems, which name the node themselves, and what the hub did with each signal. The hub also keeps the
 * readiness signals that it did not apply, so that a person can see why a node is not ready.
 */
export const receivedSignals = pgTable(
  "received_signals",
  {
    id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
    /** The name of the API token or of the person that sent the readiness signal. */
    sender: text("sender").notNull(),
    signalId: text("signal_id").notNull(),
    /**
     * The SHA-256 of the readiness signal's content, in hex. If one sender sends two readiness signals with the same id and different contents, the
     * signals are in conflict.
     */
    contentSha256: text("content_sha256").notNull(),
    outcome: text("outcome", { enum: STORED_OUTCOMES }).notNull(),
    detail: text("detail"),
    named: jsonb("named").$type<NamedNode>().notNull(),
    nodeId: uuid("node_id").$type<NodeId>(),
    /** The site of the node, or the site that the readiness signal names; null if the hub knows neither the node nor a site. */
    siteId: uuid("site_id").$type<SiteId>(),
    /**
     * The sites to which the sender of the readiness signal is limited; null for a sender without a limit. If a readiness signal waits for a node
     * that the hub does not know yet, the hub later applies the signal only to a node of the sender's sites.
     */
    senderSites: uuid("sender_sites").array().$type<SiteId[]>(),
    generation: integer("generation"),
    bootId: text("boot_id"),
    conditions: jsonb("conditions").$type<Signal["conditions"]>().notNull(),
    receivedAt: at("received_at").notNull().default(sql`now()`),
    decidedAt: at("decided_at"),
    parkedUntil: at("parked_until"),
  },
  (t) => [
    check("received_signals_outcome_check", oneOf("outcome", STORED_OUTCOMES)),
    check("received_signals_parked_check", sql`("outcome" = 'parked') = ("decided_at" is null)`),
    uniqueIndex("received_signals_id_key").on(t.sender, t.signalId).where(sql`"outcome" <> 'reused'`),
    index("received_signals_parked_idx").on(t.sender, t.parkedUntil).where(sql`"outcome" = 'parked'`),
    index("received_signals_node_idx").on(t.nodeId, t.receivedAt, t.id),
    index("received_signals_age_idx").on(t.receivedAt, t.id),
  ],
);
export type ReceivedSignalRow = typeof receivedSignals.$inferSelect;
