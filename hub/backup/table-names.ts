import { getTableName, isTable } from "../db/orm.ts";
import * as schema from "../db/schema/index.ts";

/** The table in which Drizzle notes which migrations the database has. */
export const MIGRATIONS_TABLE = "drizzle.__drizzle_migrations";

/** The tables of a backup: all tables of Muster, and the list of the database's migrations. */
export const TABLES: readonly string[] = [
  ...Object.values(schema)
    .filter((value) => isTable(value))
    .map((table) => `public.${getTableName(table)}`)
    .sort(),
  MIGRATIONS_TABLE,
];
