import { EVENT_LOCK_SPACE } from "../advisory-locks.ts";
import { and, asc, gt, lte, sql } from "../orm.ts";
import { type DomainEventRow, domainEvents } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/**
 * Oldest first. A sequence number is given out before its transaction commits, so a lower one may come to light after a higher one. Shown are
 * only the events below every number that a running transaction may still bring (see `recordDomainEvent`): a reader that goes on from the last
 * event it saw misses none (decision P5).
 */
export async function listDomainEvents(db: Db, page: { after: bigint; limit: number }): Promise<DomainEventRow[]> {
  return listSettledEvents(db, { ...page, settled: await lastSettled(db) });
}

/** The same up to a bound that `lastSettled` gave before; in a transaction that is READ COMMITTED, as a later snapshot must show what it bounds. */
export const listSettledEvents = (
  db: Db,
  page: { after: bigint; settled: bigint; limit: number },
): Promise<DomainEventRow[]> =>
  db
    .select()
    .from(domainEvents)
    .where(and(gt(domainEvents.seq, page.after), lte(domainEvents.seq, page.settled)))
    .orderBy(asc(domainEvents.seq))
    .limit(page.limit);

/**
 * Whether a reader who has read up to there can go on: that event, or an older one, is still there, and the number was given out by this database. Asked
 * after its events were read it also tells that none of them was removed meanwhile.
 */
export async function hasPosition(db: Db, position: bigint): Promise<boolean> {
  if (position === 0n) return true;
  const [row] = await db
    .select({ seq: domainEvents.seq })
    .from(domainEvents)
    .where(lte(domainEvents.seq, position))
    .limit(1);
  return row !== undefined && position <= (await lastGiven(db));
}

async function lastGiven(db: Db): Promise<bigint> {
  const { rows } = await db.execute<{ seq: string }>(
    sql`select (case when is_called then last_value else 0 end)::text as seq from domain_events_seq_seq`,
  );
  return BigInt(rows[0]?.seq ?? "0");
}

/**
 * Three statements in this order, the last one being the caller's: who marks itself after the number was read gets a higher one; who was marked
 * holds the bound down; and who let go of its mark in between has committed, which only a later statement's snapshot is sure to show.
 */
export async function lastSettled(db: Db): Promise<bigint> {
  const last = await lastGiven(db);
  const marks = await db.execute<{ seq: string | null }>(sql`
    select min((classid::int8 << 32 | objid::int8) & ((1::int8 << 48) - 1))::text as seq from pg_locks
    where locktype = 'advisory' and objsubid = 1 and (classid::int8 >> 16) = ${EVENT_LOCK_SPACE}::int8
      and database = (select oid from pg_database where datname = current_database())`);
  const mark = marks.rows[0]?.seq;
  return mark === null || mark === undefined || BigInt(mark) > last ? last : BigInt(mark);
}
