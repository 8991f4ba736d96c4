import type { CloneEvidence } from "../../../shared/identity.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { boolean, integer, jsonb, pgTable, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** The last time that two hosts were found to use one node's identity. Both hosts are barred until an operator re-enrolls the node (decision I1). */
export const nodeIdentityBars = pgTable("node_identity_bars", {
  nodeId: uuid("node_id").$type<NodeId>().primaryKey(),
  /** The generation whose certificates are no longer valid. */
  generation: integer("generation").notNull(),
  evidence: text("evidence").$type<CloneEvidence>().notNull(),
  /** Boot ids, addresses and certificate serials of the two hosts; never a secret. */
  details: jsonb("details").notNull(),
  /** True if this bar put the node into quarantine. The end of the bar then also ends the quarantine. */
  quarantined: boolean("quarantined").notNull(),
  barredAt: at("barred_at").notNull(),
  /** When the node enrolled again in a newer generation. */
  healedAt: at("healed_at"),
});
export type NodeIdentityBar = typeof nodeIdentityBars.$inferSelect;
