import { BREAKER_KINDS } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { integer, pgTable, primaryKey, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** One row a site and kind of move that was ever held back because there were too many at once (decision F1). */
export const reconcilerBreakers = pgTable(
  "reconciler_breakers",
  {
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    kind: text("kind", { enum: BREAKER_KINDS }).notNull(),
    /** Null while moves are let through. */
    trippedAt: at("tripped_at"),
    /** What waited to be moved when it tripped. */
    wouldMove: integer("would_move").notNull(),
    /** What had been moved within the window before, and counts with it. */
    moved: integer("moved").notNull().default(0),
    moveLimit: integer("move_limit").notNull(),
    inService: integer("in_service").notNull(),
    /** Some of those that waited, for a person to look at. */
    nodeIds: uuid("node_ids").array().$type<NodeId[]>().notNull(),
    resetAt: at("reset_at"),
    resetBy: text("reset_by"),
    resetReason: text("reset_reason"),
    /** Until then everything is let through: a person said that what is seen is true. */
    acceptUntil: at("accept_until"),
  },
  (t) => [primaryKey({ columns: [t.siteId, t.kind] })],
);
export type ReconcilerBreaker = typeof reconcilerBreakers.$inferSelect;
