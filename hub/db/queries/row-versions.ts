import { type PgTable, type SQL, sql } from "../orm.ts";
import type { Db, Tx } from "../tx.ts";

/** PostgreSQL's own row version: exact, where a time of change is not. Null where there is no such row. */
export async function readVersion(db: Db | Tx, table: PgTable, where: SQL): Promise<string | null> {
  const [row] = await db.select({ version: sql<string>`xmin::text` }).from(table).where(where);
  return row?.version ?? null;
}

export const isVersion = (version: string): SQL => sql`xmin::text = ${version}`;

/** Only the columns that are given. */
export const given = <T extends object>(columns: T): Partial<T> =>
  Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined)) as Partial<T>;
