import { check, integer, pgTable, sql } from "../orm.ts";
import { at } from "./columns.ts";

/** One row: until when the hubs together have looked for conditions that nobody repeats. While no hub looks, nobody could have been heard. */
export const conditionWatch = pgTable(
  "condition_watch",
  {
    id: integer("id").primaryKey().default(1),
    lookedUntil: at("looked_until").notNull().default(sql`now()`),
  },
  () => [check("condition_watch_one_row", sql.raw(`"id" = 1`))],
);
