import { type PgTable, type SQL, sql } from "../orm.ts";
import type { Db, Tx } from "../tx.ts";

/**
 * Returns PostgreSQL's own version of a row (`xmin`), or null if the row does not exist. A row's `xmin` differs after any two changes of the row,
 * while two changes may have the same time.
 */
export async function readVersion(db: Db | Tx, table: PgTable, where: SQL): Promise<string | null> {
  const [row] = await db.select({ version: sql<string>`xmin::text` }).from(table).where(where);
  return row?.version ?? null;
}

export const isVersion = (version: string): SQL => sql`xmin::text = ${version}`;

export const given = <T extends object>(columns: T): Partial<T> =>
  Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined)) as Partial<T>;
