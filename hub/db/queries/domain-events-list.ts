import { EVENT_LOCK_SPACE } from "../advisory-locks.ts";
import { and, asc, gt, lte, sql } from "../orm.ts";
import { type DomainEventRow, domainEvents } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/**
 * Lists domain events, oldest first. PostgreSQL gives out an event's sequence number before the event's transaction commits, so a lower number may
 * become visible after a higher one. The list of domain events ends below every sequence number that a running transaction may still use (see
 * `recordDomainEvent`). A reader of domain events that continues after the last event it saw misses no event (decision P5).
 */
export async function listDomainEvents(db: Db, page: { after: bigint; limit: number }): Promise<DomainEventRow[]> {
  return listSettledEvents(db, { ...page, settled: await lastSettled(db) });
}

/**
 * Lists domain events up to the sequence number `settled`, which the caller got from `lastSettled`. A transaction that calls `listSettledEvents` must
 * be READ COMMITTED, because only a snapshot taken after `lastSettled` shows all events up to `settled`.
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
 * True if a reader of domain events can continue after the sequence number `position`. A reader of events can continue only if this database has
 * given out the number `position` and still stores an event up to that number. If `hasPosition` runs after a read of the events beyond `position`,
 * the result true also proves that retention had removed none of the events beyond `position`.
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
 * Returns the highest sequence number up to which all domain events are visible. A transaction that writes domain events holds an advisory lock that
 * names a sequence number (see `markWriter`). `lastSettled` first reads the last sequence number that PostgreSQL gave to a domain event, and then the
 * advisory locks of all writers of events. The caller of `lastSettled` reads the domain events only after `lastSettled` has read the sequence number
 * and the advisory locks. If a transaction takes its writer's lock after `lastSettled` has read the last sequence number, the transaction's events
 * get higher sequence numbers. While a transaction that writes events is open, `lastSettled` returns at most the sequence number that the
 * transaction's advisory lock names. If a transaction releases its writer's lock before `lastSettled` reads the locks, the transaction has ended, and
 * its committed events are visible.
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
