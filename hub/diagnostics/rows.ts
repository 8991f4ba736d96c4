import { type SQL, sql } from "../db/orm.ts";
import type { LeftOut } from "./section.ts";

/**
 * SQL for a timestamp in the API's format. Without the expression of `iso`, a raw SQL statement would return a timestamp in PostgreSQL's own format.
 */
export const iso = (column: string): SQL =>
  sql.raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);

/** SQL that adds the number of rows before a LIMIT as the column `of` to each row. */
export const OF = sql.raw(`(count(*) over ())::int as "of"`);

/** Removes the column `of` from the rows, and adds an entry about the rows that the LIMIT cut off. */
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
