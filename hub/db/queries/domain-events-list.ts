import { EVENT_LOCK_SPACE } from "../advisory-locks.ts";
import { and, asc, eq, gt, lte, type SQL, sql } from "../orm.ts";
import { type DomainEventRow, domainEvents, nodes } from "../schema/index.ts";
import type { Db } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";

/**
 * PostgreSQL gives out an event's sequence number before the event's transaction commits, so a lower number may become visible after a higher number.
 * A list of domain events ends below every sequence number that a running transaction may still use (see `recordDomainEvent`). Because the list of
 * domain events has no gap, a reader that continues after its last event misses no event (decision P5).
 */
export async function listDomainEvents(
  db: Db,
  page: { after: bigint; limit: number; reach: Reach },
): Promise<DomainEventRow[]> {
  return listSettledEvents(db, { ...page, settled: await lastSettled(db) });
}

/**
 * Lists domain events up to the sequence number `settled`, which the caller got from `lastSettled`. A transaction that calls `listSettledEvents` must
 * be READ COMMITTED, because only a snapshot taken after `lastSettled` shows all events up to `settled`.
 */
export const listSettledEvents = (
  db: Db,
  page: { after: bigint; settled: bigint; limit: number; reach: Reach },
): Promise<DomainEventRow[]> =>
  db
    .select()
    .from(domainEvents)
    .where(and(gt(domainEvents.seq, page.after), lte(domainEvents.seq, page.settled), isSeenBy(page.reach)))
    .orderBy(asc(domainEvents.seq))
    .limit(page.limit);

/**
 * Lists all domain events after a position, and says of each event whether the reader may see it. A stream moves its position past the events of
 * other sites, so it does not read them again at each new event.
 */
export async function listEventsOfStream(
  db: Db,
  { after, limit, reach }: { readonly after: bigint; readonly limit: number; readonly reach: Reach },
): Promise<{ readonly event: DomainEventRow; readonly seen: boolean }[]> {
  const settled = await lastSettled(db);
  return db
    .select({ event: domainEvents, seen: sql<boolean>`coalesce(${isSeenBy(reach) ?? sql`true`}, false)` })
    .from(domainEvents)
    .where(and(gt(domainEvents.seq, after), lte(domainEvents.seq, settled)))
    .orderBy(asc(domainEvents.seq))
    .limit(limit);
}

const { subject, data } = domainEvents;
const ID = sql.raw("'[0-9a-f-]{36}$'");
const idInSubject = sql`substring(${subject} from ${ID})::uuid`;
/**
 * SQL for the site of a domain event: the data of most events names the site, and the other events have a node or a site as their subject. An event
 * may have no site.
 */
const siteOfEvent = sql`coalesce(substring(${data} ->> 'site_id' from ${ID})::uuid, case split_part(${subject}, '/', 1)
  when 'maas-sites' then ${idInSubject}
  when 'nodes' then (select ${nodes.siteId} from ${nodes} where ${nodes.id} = ${idInSubject}) end)`;
/** Only events about allocations and about claimed repairs belong to a tenant; those of a claimed repair belong to the tenant of its claimant. */
const tenantOfEvent = sql`case split_part(${subject}, '/', 1)
  when 'allocations' then ${data} ->> 'tenant' when 'repairs' then ${data} ->> 'repair_tenant' end`;
const isSeenBy = (reach: Reach): SQL | undefined => isWithin(reach, { site: siteOfEvent, tenant: tenantOfEvent });

/**
 * True if this database has given out the sequence number `position` and still stores an event up to that number. A reader of domain events can
 * continue after the number `position` only if `hasPosition` returns true. A reader first reads events and then calls `hasPosition`: the result true
 * proves that retention had not removed an event in between.
 */
export async function hasPosition(db: Db, position: bigint): Promise<boolean> {
  if (position === 0n) return true;
  const [row] = await db
    .select({ seq: domainEvents.seq })
    .from(domainEvents)
    .where(lte(domainEvents.seq, position))
    .limit(1);
  return row !== undefined && position <= (await lastGiven(db)) && !(await isOfLostDatabase(db, position));
}

/** True if the event number `position` may come from a database that a restore replaced, so that the reader may have missed events. */
async function isOfLostDatabase(db: Db, position: bigint): Promise<boolean> {
  const [restore] = await db
    .select({ last: sql<string>`${domainEvents.data} ->> 'last_sequence'` })
    .from(domainEvents)
    .where(
      and(
        eq(domainEvents.subject, "hub"),
        eq(domainEvents.type, "hub.database.restored"),
        gt(domainEvents.seq, position),
      ),
    )
    .orderBy(asc(domainEvents.seq))
    .limit(1);
  return restore !== undefined && position > BigInt(restore.last);
}

async function lastGiven(db: Db): Promise<bigint> {
  const { rows } = await db.execute<{ seq: string }>(
    sql`select (case when is_called then last_value else 0 end)::text as seq from domain_events_seq_seq`,
  );
  return BigInt(rows[0]?.seq ?? "0");
}

/**
 * Makes the number of the next domain event so high that no earlier event had it, not even an event of a lost database. Because no event number is
 * used twice, no reader can mistake a new event for one that it has already read. `skipPositions` chooses the number from the clock, and this number
 * grows faster than hubs write events, so it is also higher after a second restore of the same backup. `skipPositions` returns the last event number
 * that PostgreSQL had given out before the jump to the higher number.
 */
export async function skipPositions(db: Db): Promise<bigint> {
  const last = await lastGiven(db);
  await db.execute(sql`
    select setval('domain_events_seq_seq', greatest(${last.toString()}::bigint, floor(extract(epoch from now()))::bigint * ${EVENTS_A_SECOND}::int))`);
  return last;
}

/** If event numbers grow by `EVENTS_A_SECOND` each second, they fit into the 48 bits of the event writers' locks until the year 2059. */
const EVENTS_A_SECOND = 100_000;

/**
 * Returns the highest sequence number up to which all domain events are visible. A transaction that writes domain events holds an advisory lock that
 * names a sequence number (see `markWriter`). `lastSettled` first reads the last sequence number that PostgreSQL gave to an event, and only
 * afterwards the locks of all writers of events. A transaction that takes its lock as a writer of events after `lastSettled` has read the last
 * sequence number gives higher numbers to its events. While a writer of events holds its lock, `lastSettled` returns at most the sequence number that
 * the lock names. A transaction that released its lock as a writer of events before `lastSettled` read the locks has committed its events, so the
 * events are visible. If PostgreSQL has given out no event number since `lastSettled` returned the number `known`, `lastSettled` returns `known`
 * again without reading the locks.
 */
export async function lastSettled(db: Db, known?: bigint): Promise<bigint> {
  const last = await lastGiven(db);
  if (last === known) return known;
  const marks = await db.execute<{ seq: string | null }>(sql`
    select min((classid::int8 << 32 | objid::int8) & ((1::int8 << 48) - 1))::text as seq from pg_locks
    where locktype = 'advisory' and objsubid = 1 and (classid::int8 >> 16) = ${EVENT_LOCK_SPACE}::int8
      and database = (select oid from pg_database where datname = current_database())`);
  const mark = marks.rows[0]?.seq;
  return mark === null || mark === undefined || BigInt(mark) > last ? last : BigInt(mark);
}
