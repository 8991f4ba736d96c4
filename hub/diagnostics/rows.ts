import { type SQL, sql } from "../db/orm.ts";
import type { LeftOut } from "./section.ts";

/** A timestamp as the API writes it, made by the database: raw statements return its own text. */
export const iso = (column: string): SQL =>
  sql.raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);

/** How many rows there are before a LIMIT, beside each of those that it lets through. */
export const OF = sql.raw(`(count(*) over ())::int as "of"`);

/** The rows without that number, and what is said of those that were left. */
export function bounded<R extends { of: number }>(
  list: string,
  rows: readonly R[],
): { shown: Omit<R, "of">[]; leftOut: LeftOut[] } {
  const of = rows[0]?.of ?? 0;
  return {
    shown: rows.map(({ of: _, ...row }) => row),
    leftOut: of > rows.length ? [{ list, shown: rows.length, of }] : [],
  };
}
