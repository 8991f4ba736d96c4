import { sql, timestamp } from "../orm.ts";

/**
 * All times in the database are `timestamptz` and come from the database's clock. No decision compares a time from the database with a hub's clock
 * (architecture 1).
 */
export const at = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });
export const createdAt = () => at("created_at").notNull().default(sql`now()`);
export const updatedAt = () => at("updated_at").notNull().default(sql`now()`);

/**
 * SQL text of a CHECK constraint that allows only the given values in a column. An ordinary migration changes the set of a CHECK constraint, while a
 * PostgreSQL enum would need ALTER TYPE.
 */
export const oneOf = (column: string, values: readonly string[]) =>
  sql.raw(`"${column}" in (${values.map((value) => `'${value}'`).join(", ")})`);
