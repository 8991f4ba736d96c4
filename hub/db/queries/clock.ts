import { sql } from "../orm.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";

/**
 * Returns the database's time in full precision, as text. A time that is compared with the database's timestamps must come from the database's clock.
 */
export async function databaseClock(db: Db | Tx): Promise<string> {
  const { rows } = await db.execute<{ at: string }>(sql`select clock_timestamp()::text as at`);
  const [row] = rows;
  if (row === undefined) throw new Error("the database did not tell its time");
  return row.at;
}

export async function databaseNow(db: Db | Tx): Promise<Date> {
  return toDate(await databaseClock(db));
}
