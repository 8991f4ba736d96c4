import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { sql } from "../../db/orm.ts";
import { iso } from "../rows.ts";
import { databaseSection } from "../section.ts";

/**
 * The largest number of rows that the diagnostics count in a database table. For a table with more rows than `MOST_COUNTED`, `estimated_rows` says
 * roughly how many rows the table has.
 */
const MOST_COUNTED = 50_000;

const Table = z.strictObject({
  table: z.string(),
  rows: z.int(),
  /** True if the database table has more rows than the diagnostics have counted. */
  more: z.boolean(),
  estimated_rows: z.number(),
  dead_rows: z.number(),
  bytes: z.number(),
  vacuumed_at: Timestamp.nullable(),
});

export const tables = databaseSection({
  name: "tables",
  about: "Rows and size of each table",
  data: z.array(Table),
  read: async (tx) => {
    const { rows: names } = await tx.execute<{ name: string }>(
      sql`select tablename as name from pg_tables where schemaname = 'public' order by 1`,
    );
    if (names.length === 0) return { data: [] };
    const counts = names.map(
      ({ name }) => sql`select ${name}::text as name, count(*)::int as n
        from (select from ${sql.identifier(name)} limit ${MOST_COUNTED + 1}) counted`,
    );
    const { rows } = await tx.execute<z.input<typeof Table>>(sql`
      select c.name as table, least(c.n, ${MOST_COUNTED}::int) as rows, c.n > ${MOST_COUNTED}::int as more,
        s.n_live_tup::float8 as estimated_rows, s.n_dead_tup::float8 as dead_rows,
        pg_total_relation_size(s.relid)::float8 as bytes, ${iso("greatest(s.last_vacuum, s.last_autovacuum)")} as vacuumed_at
      from (${sql.join(counts, sql` union all `)}) c
      join pg_stat_user_tables s on s.schemaname = 'public' and s.relname = c.name
      order by 1`);
    return { data: rows };
  },
});
