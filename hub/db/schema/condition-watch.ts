import { check, integer, pgTable, sql } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The progress of the hubs' periodic search for expired conditions, in one row for all hubs. While no hub searches for expired conditions, no hub can
 * have received reports of conditions either.
 */
export const conditionWatch = pgTable(
  "condition_watch",
  {
    id: integer("id").primaryKey().default(1),
    /** The hubs' periodic search has found every condition that expired up to the time `looked_until`, and has reported it as stale. */
    lookedUntil: at("looked_until").notNull().default(sql`now()`),
    lookedAt: at("looked_at").notNull().default(sql`now()`),
    /**
     * After an outage of the hubs, a hub extends the conditions that were valid before the outage, in steps. After an outage of the hubs, a condition
     * whose `expires_at` is below `grace_until` still has to be extended.
     */
    graceUntil: at("grace_until"),
  },
  () => [check("condition_watch_one_row", sql.raw(`"id" = 1`))],
);
