import type { Pool } from "pg";

export interface StoredRow {
  readonly table: string;
  /** An SQL expression that returns all columns of a table as text, with bytes in hex. */
  readonly text: string;
}

/**
 * Returns all rows of all tables of a database, except PostgreSQL's own tables. The query leaves out tables whose file is empty, because PostgreSQL
 * would take longer to plan a query of all tables than to run the query. With `having`, `storedRows` returns only rows that contain one of the
 * given texts.
 */
export async function storedRows(pool: Pick<Pool, "query">, having?: readonly string[]): Promise<StoredRow[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')
        and pg_relation_size(format('%I.%I', schemaname, tablename)::regclass) > 0`,
  );
  if (tables.length === 0) return [];
  const each = tables.map(
    ({ name }) => `select '${name.replaceAll("'", "''")}' as "table", t::text as text from ${name} t`,
  );
  const rows = `select * from (${each.join(" union all ")}) rows`;
  if (having === undefined) return (await pool.query<StoredRow>(rows)).rows;
  const only = "where exists (select from unnest($1::text[]) one where strpos(rows.text, one) > 0)";
  return (await pool.query<StoredRow>(`${rows} ${only}`, [having])).rows;
}
