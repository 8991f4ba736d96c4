import { BREAKER_KINDS } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { integer, pgTable, primaryKey, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** One row for each site and kind of move whose breaker has ever tripped because too many nodes would have moved at once (decision F1). */
export const reconcilerBreakers = pgTable(
  "reconciler_breakers",
  {
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    kind: text("kind", { enum: BREAKER_KINDS }).notNull(),
    /** When the breaker tripped. Null while the breaker lets moves through. */
    trippedAt: at("tripped_at"),
    /** How many nodes waited to be moved when the breaker tripped. */
    wouldMove: integer("would_move").notNull(),
    /** How many nodes had been moved in the window before the trip. Moved nodes count towards the limit too. */
    moved: integer("moved").notNull().default(0),
    moveLimit: integer("move_limit").notNull(),
    inService: integer("in_service").notNull(),
    /** Some of the waiting nodes, as examples for the operator. */
    nodeIds: uuid("node_ids").array().$type<NodeId[]>().notNull(),
    resetAt: at("reset_at"),
    resetBy: text("reset_by"),
    resetReason: text("reset_reason"),
    /** Until this time every move is let through, because a person confirmed that the observations are right. */
    acceptUntil: at("accept_until"),
  },
  (t) => [primaryKey({ columns: [t.siteId, t.kind] })],
);
export type ReconcilerBreaker = typeof reconcilerBreakers.$inferSelect;
