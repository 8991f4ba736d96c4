import { BREAKER_KINDS } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { integer, pgTable, primaryKey, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * One row for each site and kind of breaker that has ever tripped; a tripped breaker stops status changes or automatic repair requests, because they
 * would affect too many nodes of the site at once (decision F1).
 */
export const reconcilerBreakers = pgTable(
  "reconciler_breakers",
  {
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    kind: text("kind", { enum: BREAKER_KINDS }).notNull(),
    trippedAt: at("tripped_at"),
    wouldMove: integer("would_move").notNull(),
    /**
     * The number of nodes that counted towards the breaker's limit before the trip: nodes that changed status within the breaker's time window, or,
     * for the kind `repair`, machines that wait for repair or are in repair.
     */
    moved: integer("moved").notNull().default(0),
    moveLimit: integer("move_limit").notNull(),
    inService: integer("in_service").notNull(),
    /** The ids of some nodes whose status change or repair request the tripped breaker stops, as examples for the operator. */
    nodeIds: uuid("node_ids").array().$type<NodeId[]>().notNull(),
    resetAt: at("reset_at"),
    resetBy: text("reset_by"),
    resetReason: text("reset_reason"),
    /**
     * Until `accept_until`, the breaker lets every status change or repair request through, because a person confirmed the hub's observations of the
     * nodes.
     */
    acceptUntil: at("accept_until"),
  },
  (t) => [primaryKey({ columns: [t.siteId, t.kind] })],
);
export type ReconcilerBreaker = typeof reconcilerBreakers.$inferSelect;
