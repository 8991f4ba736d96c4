import { sql } from "drizzle-orm";
import { check, integer, pgTable, uuid } from "drizzle-orm/pg-core";
import { createdAt } from "./columns.ts";

/** The one row that tells this installation from another one. */
export const installation = pgTable(
  "installation",
  {
    id: integer("id").primaryKey().default(1),
    /** Names the secret store that belongs to this database; the store holds the same id. */
    secretStoreId: uuid("secret_store_id").notNull(),
    createdAt: createdAt(),
  },
  () => [check("installation_one_row", sql.raw(`"id" = 1`))],
);
