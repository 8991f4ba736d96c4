import type { CloneEvidence } from "../../../shared/identity.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { boolean, integer, jsonb, pgTable, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The last time that two hosts were found to use one node's identity. Both hosts with the node's identity are barred until an operator re-enrolls the
 * node (decision I1).
 */
export const nodeIdentityBars = pgTable("node_identity_bars", {
  nodeId: uuid("node_id").$type<NodeId>().primaryKey(),
  /** The node's generation whose certificates the bar made invalid. */
  generation: integer("generation").notNull(),
  evidence: text("evidence").$type<CloneEvidence>().notNull(),
  /** The boot ids, addresses and certificate serials of the two hosts, which include no secret. */
  details: jsonb("details").notNull(),
  /**
   * True if this identity bar put the node into quarantine. If the identity bar caused the quarantine, the end of the bar also ends the quarantine.
   */
  quarantined: boolean("quarantined").notNull(),
  barredAt: at("barred_at").notNull(),
  /** When the barred node enrolled again in a newer generation. */
  healedAt: at("healed_at"),
});
export type NodeIdentityBar = typeof nodeIdentityBars.$inferSelect;
