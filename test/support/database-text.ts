import type { Pool } from "pg";

export interface StoredRow {
  readonly table: string;
  /** Every column, as text; bytes are hex. */
  readonly text: string;
}

/** All rows of all tables of all schemas but PostgreSQL's own, in one query; only those that hold one of `having`, where it is given. */
export async function storedRows(pool: Pick<Pool, "query">, having?: readonly string[]): Promise<StoredRow[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  const each = tables.map(
    ({ name }) => `select '${name.replaceAll("'", "''")}' as "table", t::text as text from ${name} t`,
  );
  const rows = `select * from (${each.join(" union all ")}) rows`;
  if (having === undefined) return (await pool.query<StoredRow>(rows)).rows;
  const only = "where exists (select from unnest($1::text[]) one where strpos(rows.text, one) > 0)";
  return (await pool.query<StoredRow>(`${rows} ${only}`, [having])).rows;
}
