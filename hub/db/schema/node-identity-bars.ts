import type { CloneEvidence } from "../../../shared/identity.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { boolean, integer, jsonb, pgTable, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The last finding that two hosts use a node's identity, e.g. after a disk was copied. The hub refuses both hosts with the node's identity until an
 * operator re-enrolls the node (decision I1).
 */
export const nodeIdentityBars = pgTable("node_identity_bars", {
  nodeId: uuid("node_id").$type<NodeId>().primaryKey(),
  generation: integer("generation").notNull(),
  evidence: text("evidence").$type<CloneEvidence>().notNull(),
  /** The boot ids, addresses and certificate serials of the two hosts that used one identity. The column `details` contains no secret. */
  details: jsonb("details").notNull(),
  /**
   * A quarantine because of two hosts with one identity ends when the node's agent has enrolled in a newer generation and is connected (decision N4).
   */
  quarantined: boolean("quarantined").notNull(),
  barredAt: at("barred_at").notNull(),
  /** The time when, after two hosts had used the node's identity, a host enrolled in a newer generation; null while the hub refuses both hosts. */
  healedAt: at("healed_at"),
});
export type NodeIdentityBar = typeof nodeIdentityBars.$inferSelect;
