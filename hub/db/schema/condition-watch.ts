import { check, integer, pgTable, sql } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The progress of the sweep for stale conditions, in one row for all hubs. While no hub sweeps for stale conditions, no hub can have received reports
 * of conditions either.
 */
export const conditionWatch = pgTable(
  "condition_watch",
  {
    id: integer("id").primaryKey().default(1),
    /** The sweep for stale conditions has reported every condition that expired up to the time `looked_until`. */
    lookedUntil: at("looked_until").notNull().default(sql`now()`),
    lookedAt: at("looked_at").notNull().default(sql`now()`),
    /**
     * After an outage of the hubs, a hub extends the conditions that were valid before the outage, in steps. A condition whose `expires_at` is below
     * `grace_until` still has to be extended after the hubs' outage.
     */
    graceUntil: at("grace_until"),
  },
  () => [check("condition_watch_one_row", sql.raw(`"id" = 1`))],
);
