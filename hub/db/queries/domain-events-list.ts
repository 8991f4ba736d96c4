import { EVENT_LOCK_SPACE } from "../advisory-locks.ts";
import { and, asc, gt, lte, sql } from "../orm.ts";
import { type DomainEventRow, domainEvents } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/**
 * Lists domain events, oldest first. PostgreSQL gives out an event's sequence number before the transaction commits, so a lower number may become
 * visible after a higher one. The list of events therefore ends below every number that a running transaction may still use (see
 * `recordDomainEvent`). A reader that continues from the last event it saw misses no event (decision P5).
 */
export async function listDomainEvents(db: Db, page: { after: bigint; limit: number }): Promise<DomainEventRow[]> {
  return listSettledEvents(db, { ...page, settled: await lastSettled(db) });
}

/**
 * Lists domain events up to a bound that `lastSettled` returned earlier. A calling transaction must be READ COMMITTED, because only a later snapshot
 * shows all events below the bound.
 */
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
 * Whether a reader of domain events can continue after the sequence number `position`. This database must have given out the number `position`, and
 * must still store the event of that number or an older one. If `hasPosition` runs after the read, it also proves that retention removed none of the
 * events in between.
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
 * The highest sequence number below which all domain events are visible. The order of the SQL statements in `lastSettled` matters: first the last
 * number, then the writers' marks, then the caller's read of events. A writer of events that marks itself after the first statement gets a higher
 * number. A writer of events that is marked lowers the bound. A writer that removed its mark in between has committed, and a later statement surely
 * shows its events.
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
