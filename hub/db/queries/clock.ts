import { sql } from "../orm.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";

/** The database's clock, as exactly as it tells it: what is compared with its timestamps is taken from no other. */
export async function databaseClock(db: Db | Tx): Promise<string> {
  const { rows } = await db.execute<{ at: string }>(sql`select clock_timestamp()::text as at`);
  const [row] = rows;
  if (row === undefined) throw new Error("the database did not tell its time");
  return row.at;
}

/** The same to the millisecond, for judgements. */
export async function databaseNow(db: Db | Tx): Promise<Date> {
  return toDate(await databaseClock(db));
}
