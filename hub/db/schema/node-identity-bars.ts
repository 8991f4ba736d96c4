import type { CloneEvidence } from "../../../shared/identity.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { boolean, integer, jsonb, pgTable, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** The last time that two users of one node's identity were found out. Both are barred until an operator re-enrolls the node (decision I1). */
export const nodeIdentityBars = pgTable("node_identity_bars", {
  nodeId: uuid("node_id").$type<NodeId>().primaryKey(),
  /** The generation whose certificates are void. */
  generation: integer("generation").notNull(),
  evidence: text("evidence").$type<CloneEvidence>().notNull(),
  /** Boots, addresses and serials of the two; never a secret. */
  details: jsonb("details").notNull(),
  /** Whether this bar is what quarantined the node: then its end lifts the quarantine. */
  quarantined: boolean("quarantined").notNull(),
  barredAt: at("barred_at").notNull(),
  /** When the node enrolled anew. */
  healedAt: at("healed_at"),
});
export type NodeIdentityBar = typeof nodeIdentityBars.$inferSelect;
