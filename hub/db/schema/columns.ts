import { sql, timestamp } from "../orm.ts";

/** All times are timestamptz and the database's own; decisions never mix in a hub's clock (architecture 1). */
export const at = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });
export const createdAt = () => at("created_at").notNull().default(sql`now()`);
export const updatedAt = () => at("updated_at").notNull().default(sql`now()`);

/** CHECK text for a closed set, so a migration and not an ALTER TYPE changes it. */
export const oneOf = (column: string, values: readonly string[]) =>
  sql.raw(`"${column}" in (${values.map((value) => `'${value}'`).join(", ")})`);
