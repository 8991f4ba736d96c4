import { type SQL, sql } from "../db/orm.ts";
import type { LeftOut } from "./section.ts";

/** Returns SQL for a timestamp in the API's format. PostgreSQL's own format of a timestamp differs from the API's format. */
export const iso = (column: string): SQL =>
  sql.raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);

/** SQL that adds the column `of` to each row: the number of rows that the query would return without its LIMIT. */
export const OF = sql.raw(`(count(*) over ())::int as "of"`);

/** Removes the column `of` from the rows. If the query's LIMIT has cut off rows, `bounded` adds an entry with the number of all rows. */
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
