import { BREAKER_KINDS } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { integer, pgTable, primaryKey, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** One row for each breaker that has ever tripped, by site and kind, because too many nodes would have changed status at once (decision F1). */
export const reconcilerBreakers = pgTable(
  "reconciler_breakers",
  {
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    kind: text("kind", { enum: BREAKER_KINDS }).notNull(),
    trippedAt: at("tripped_at"),
    wouldMove: integer("would_move").notNull(),
    /** The number of nodes that changed status in the breaker's window before the trip; these nodes count towards the breaker's limit. */
    moved: integer("moved").notNull().default(0),
    moveLimit: integer("move_limit").notNull(),
    inService: integer("in_service").notNull(),
    /** The ids of some nodes that the breaker holds back, as examples for the operator. */
    nodeIds: uuid("node_ids").array().$type<NodeId[]>().notNull(),
    resetAt: at("reset_at"),
    resetBy: text("reset_by"),
    resetReason: text("reset_reason"),
    /** Until `accept_until`, the breaker lets every status change through, because a person confirmed the hub's observations of the nodes. */
    acceptUntil: at("accept_until"),
  },
  (t) => [primaryKey({ columns: [t.siteId, t.kind] })],
);
export type ReconcilerBreaker = typeof reconcilerBreakers.$inferSelect;
