import { check, integer, pgTable, sql } from "../orm.ts";
import { at } from "./columns.ts";

/** One row: how far the hubs together have looked for conditions that nobody repeats. While no hub looks, nobody could have been heard. */
export const conditionWatch = pgTable(
  "condition_watch",
  {
    id: integer("id").primaryKey().default(1),
    /** Of what expired up to here, all is told. */
    lookedUntil: at("looked_until").notNull().default(sql`now()`),
    /** When a hub looked last. */
    lookedAt: at("looked_at").notNull().default(sql`now()`),
    /** While what held before an outage is given its grace, step by step: what ends before this is not given it yet. */
    graceUntil: at("grace_until"),
  },
  () => [check("condition_watch_one_row", sql.raw(`"id" = 1`))],
);
