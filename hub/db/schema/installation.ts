import { check, integer, pgTable, sql, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";

export const installation = pgTable(
  "installation",
  {
    id: integer("id").primaryKey().default(1),
    /** The id of the secret store that belongs to this database; the secret store holds the same id. */
    secretStoreId: uuid("secret_store_id").notNull(),
    createdAt: createdAt(),
  },
  () => [check("installation_one_row", sql.raw(`"id" = 1`))],
);
