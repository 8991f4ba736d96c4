import type { SiteId } from "../../../shared/ids.ts";
import { type AnyPgColumn, and, eq, inArray, isNotNull, like, or, type SQL, sql, union } from "../orm.ts";
import { type MaasSiteWatch, maasSiteWatches, nodeOnboardings, workflows } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface SiteWatch {
  readonly siteId: SiteId;
  readonly ours: boolean;
  /** True if somebody asked for a poll of the site, and no poll has failed since then. */
  readonly wake: boolean;
  /** The milliseconds until another hub's lease on the site ends unless that hub renews the lease; 0 if this hub holds the lease. */
  readonly lapsesInMs: number;
}

/**
 * SQL that renews this hub's leases on `sites`, takes free and expired leases, and skips rows that another transaction has locked. A hub's renewal of
 * its lease takes a weaker row lock than a takeover by another hub. A transaction that called `holdsFence` blocks a takeover of the site's lease by
 * another hub, but no renewal by the holder. A site's fence rises when its lease goes to another hub, so a hub that lost the lease can write nothing
 * more.
 */
const keptAmong = (sites: SQL, hubId: string, leaseSeconds: number): SQL => sql`
  sites as (${sites}),
  ours as (
    select w.site_id from maas_site_watches w
    where w.site_id in (select id from sites) and w.lease_owner = ${hubId}::uuid
    for no key update of w skip locked),
  takeable as (
    select w.site_id from maas_site_watches w
    where w.site_id in (select id from sites)
      and (w.lease_owner is null or (w.lease_owner <> ${hubId}::uuid and w.lease_until < now()))
    for update of w skip locked),
  held as (
    update maas_site_watches w set lease_owner = ${hubId}::uuid, lease_until = now() + make_interval(secs => ${leaseSeconds}),
      fence = w.fence + case when w.lease_owner = ${hubId}::uuid then 0 else 1 end
    where w.site_id in (select site_id from ours union all select site_id from takeable)
    returning w.site_id),
  added as (
    insert into maas_site_watches (site_id, lease_owner, lease_until, fence)
    select id, ${hubId}::uuid, now() + make_interval(secs => ${leaseSeconds}), 1 from sites
    where not exists (select from maas_site_watches w where w.site_id = sites.id)
    on conflict (site_id) do nothing
    returning site_id),
  kept as (select site_id from held union all select site_id from added)`;

/**
 * `keepWatches` renews this hub's leases on sites and takes free and expired leases, in one statement for any number of sites. Every hub runs
 * `keepWatches` about once a second, so `keepWatches` writes no row of a site whose lease another hub holds. A lease that a hub could not renew stays
 * with that hub until another hub takes the lease. Hubs watch a disabled site until its unfinished workflows have ended (lifecycle 3.5).
 */
export async function keepWatches(db: Db, hubId: string, leaseSeconds: number): Promise<SiteWatch[]> {
  const sites = sql`
    select s.id, w.lease_owner, w.lease_until, w.wake_requested_at, w.last_error_at
    from maas_sites s left join maas_site_watches w on w.site_id = s.id
    where s.status = 'active' or exists (
      select 1 from workflows live where live.site_id = s.id and live.status in ('pending', 'running', 'compensating'))`;
  const { rows } = await db.execute<{ site_id: SiteId; ours: boolean; wake: boolean; lapses_in_ms: number }>(sql`
    with ${keptAmong(sites, hubId, leaseSeconds)},
    seen as (
      select sites.*, kept.site_id is not null or coalesce(sites.lease_owner = ${hubId}::uuid, false) as ours
      from sites left join kept on kept.site_id = sites.id)
    select id as site_id, ours,
      wake_requested_at is not null and (last_error_at is null or wake_requested_at > last_error_at) as wake,
      case when ours then 0
        else ceil(extract(epoch from greatest(interval '0', coalesce(lease_until, now()) - now())) * 1000) end::int as lapses_in_ms
    from seen`);
  return rows.map((row) => ({ siteId: row.site_id, ours: row.ours, wake: row.wake, lapsesInMs: row.lapses_in_ms }));
}

export interface HeldWatch extends MaasSiteWatch {
  /** Milliseconds since the begin of the last complete read of the site's machines from MAAS, by the database's clock; null if there was none. */
  readonly sinceSweepMs: number | null;
}

/** `holdWatch` returns null if another hub holds the site's lease or is taking the lease at this moment. */
export async function holdWatch(
  db: Db,
  siteId: SiteId,
  hubId: string,
  leaseSeconds: number,
): Promise<HeldWatch | null> {
  await db.execute(sql`
    with ${keptAmong(sql`select ${siteId}::uuid as id`, hubId, leaseSeconds)} select site_id from kept`);
  const [row] = await db
    .select({
      watch: maasSiteWatches,
      sinceSweepMs: sql<number | null>`(extract(epoch from now() - ${maasSiteWatches.lastSweepAt}) * 1000)::float8`,
    })
    .from(maasSiteWatches)
    .where(and(eq(maasSiteWatches.siteId, siteId), eq(maasSiteWatches.leaseOwner, hubId)));
  return row === undefined ? null : { ...row.watch, sinceSweepMs: row.sinceSweepMs };
}

export async function releaseWatch(db: Db, siteId: SiteId, hubId: string): Promise<void> {
  await db
    .update(maasSiteWatches)
    .set({ leaseOwner: null, leaseUntil: null })
    .where(and(eq(maasSiteWatches.siteId, siteId), eq(maasSiteWatches.leaseOwner, hubId)));
}

/**
 * True if no hub has taken over the lease on the site since this hub got the lease and its fence number `fence`. Until the transaction ends, no other
 * hub can take over the site's lease, but the lease's holder can renew the lease.
 */
export async function holdsFence(tx: Tx, siteId: SiteId, fence: number): Promise<boolean> {
  const rows = await tx
    .select({ siteId: maasSiteWatches.siteId })
    .from(maasSiteWatches)
    .where(and(eq(maasSiteWatches.siteId, siteId), eq(maasSiteWatches.fence, fence)))
    .for("key share");
  return rows.length > 0;
}

export interface PollRecord {
  /** The position in MAAS's list of events up to which the hub has read; null if the hub has never read an event. */
  readonly place: { readonly cursor: number; readonly mark: string | null } | null;
  /** False if a poll got neither events nor machines from MAAS. */
  readonly hasRead: boolean;
  /**
   * True if the ids of MAAS's events are smaller than before, as after MAAS was restored from a backup. If MAAS's event ids are smaller than before,
   * the last complete read of the site's machines is no longer valid.
   */
  readonly startsAnew: boolean;
  /**
   * The milliseconds since the begin of the complete read of the site's machines that the recorded poll finished; null if the poll finished no such
   * read.
   */
  readonly sweptForMs: number | null;
  /**
   * The time of the request for an immediate poll of MAAS that the recorded poll has fulfilled; null if nobody had requested a poll. A request for a
   * poll that is newer than `wakeAnswered` stays in the database, so the hub polls MAAS once more.
   */
  readonly wakeAnswered: Date | null;
  /** The time of the request for a read of all machines of the site that the recorded poll has fulfilled; null if nobody had requested such a read. */
  readonly sweepAnswered: Date | null;
  /** The machines in MAAS's list of machines that the hub could not parse; null if the poll did not read the list. */
  readonly unreadable: { readonly machines: number; readonly systemIds: readonly string[] } | null;
  /** False while the hub still has to repeat a failed read of all machines, so that the error of this read stays visible. */
  readonly clearsError: boolean;
}

/**
 * If another hub has taken the site's lease, `recordPoll` stores nothing and returns false, and the caller must discard everything that this poll of
 * MAAS read. A caller calls `recordPoll` last in its transaction, because `recordPoll` locks the site's row of leases and polls, which every hub
 * queries each second.
 */
export async function recordPoll(tx: Tx, siteId: SiteId, fence: number, poll: PollRecord): Promise<boolean> {
  const rows = await tx
    .update(maasSiteWatches)
    .set({
      eventCursor: poll.place?.cursor ?? null,
      eventMark: poll.place?.mark ?? null,
      ...(poll.hasRead ? { lastPollAt: sql`now()` } : {}),
      ...(poll.sweptForMs === null
        ? poll.startsAnew
          ? { lastSweepAt: null }
          : {}
        : { lastSweepAt: sql`now() - make_interval(secs => ${poll.sweptForMs / 1000})` }),
      ...(poll.wakeAnswered === null
        ? {}
        : {
            wakeRequestedAt: unlessNewer(maasSiteWatches.wakeRequestedAt, poll.wakeAnswered),
          }),
      ...(poll.sweepAnswered === null
        ? {}
        : { sweepRequestedAt: unlessNewer(maasSiteWatches.sweepRequestedAt, poll.sweepAnswered) }),
      ...(poll.unreadable === null
        ? {}
        : { unreadableMachines: poll.unreadable.machines, unreadableSystemIds: [...poll.unreadable.systemIds] }),
      ...(poll.clearsError ? { consecutiveFailures: 0, lastErrorCode: null } : {}),
    })
    .where(and(eq(maasSiteWatches.siteId, siteId), eq(maasSiteWatches.fence, fence)))
    .returning({ siteId: maasSiteWatches.siteId });
  return rows.length > 0;
}

/**
 * Clears the time of a request for a poll of MAAS or for a read of all machines, unless the request is newer than the fulfilled request of the time
 * `answered`. JavaScript cuts off the microseconds of PostgreSQL's times, so the SQL adds one millisecond to the request's time `answered`.
 */
const unlessNewer = (column: AnyPgColumn, answered: Date) =>
  sql`case when ${column} <= ${answered.toISOString()}::timestamptz + interval '1 millisecond' then null else ${column} end`;

/**
 * Resets what the hub has stored about its polls of a site to the state before the first poll, after the site has moved to another MAAS region.
 * `watchAnew` raises the site's fence, so a poll of the former MAAS region that still runs can write nothing more.
 */
export async function watchAnew(tx: Tx, siteId: SiteId): Promise<void> {
  await tx
    .update(maasSiteWatches)
    .set({
      fence: sql`${maasSiteWatches.fence} + 1`,
      eventCursor: null,
      eventMark: null,
      lastPollAt: null,
      lastSweepAt: null,
      unreadableMachines: 0,
      consecutiveFailures: 0,
      lastErrorCode: null,
      lastErrorAt: null,
    })
    .where(eq(maasSiteWatches.siteId, siteId));
}

/** With `sweep`, the hub that polls the site's MAAS not only polls it now but also reads all machines of the site. */
export async function requestPoll(tx: Tx, siteId: SiteId, { sweep }: { readonly sweep: boolean }): Promise<void> {
  const now = { wakeRequestedAt: sql`now()`, ...(sweep ? { sweepRequestedAt: sql`now()` } : {}) };
  await tx
    .insert(maasSiteWatches)
    .values({ siteId, ...now })
    .onConflictDoUpdate({ target: maasSiteWatches.siteId, set: now });
}

export async function requestSweep(tx: Tx, siteId: SiteId): Promise<void> {
  await tx
    .update(maasSiteWatches)
    .set({ wakeRequestedAt: sql`now()`, sweepRequestedAt: sql`now()` })
    .where(eq(maasSiteWatches.siteId, siteId));
}

export async function recordFailedPoll(db: Db, siteId: SiteId, fence: number, code: string): Promise<number> {
  const [row] = await db
    .update(maasSiteWatches)
    .set({
      consecutiveFailures: sql`${maasSiteWatches.consecutiveFailures} + 1`,
      lastErrorCode: code,
      lastErrorAt: sql`now()`,
    })
    .where(and(eq(maasSiteWatches.siteId, siteId), eq(maasSiteWatches.fence, fence)))
    .returning({ failures: maasSiteWatches.consecutiveFailures });
  return row?.failures ?? 1;
}

/** Returns the site's machines for which a workflow waits, and the machines for whose agent or task an onboarding waits. */
export async function waitedOnSystemIds(db: Db, siteId: SiteId): Promise<string[]> {
  const prefix = `maas:${siteId}/`;
  const live = inArray(workflows.status, ["running", "compensating"]);
  const awaited = db
    .select({ systemId: sql<string>`substr(${workflows.waitOn}, ${prefix.length + 1}::int)` })
    .from(workflows)
    .where(and(like(workflows.waitOn, `${prefix}%`), live));
  const hosts = db
    .select({ systemId: sql<string>`${nodeOnboardings.maasSystemId}` })
    .from(nodeOnboardings)
    .innerJoin(workflows, eq(workflows.id, nodeOnboardings.onboardingId))
    .where(
      and(
        eq(nodeOnboardings.siteId, siteId),
        isNotNull(nodeOnboardings.maasSystemId),
        or(like(workflows.waitOn, "node:%"), like(workflows.waitOn, "task:%")),
        live,
      ),
    );
  const rows = await union(awaited, hosts);
  return rows.map((row) => row.systemId);
}

/** The time `at` of the site's last poll is null before the hub's first read of MAAS, and the error code is null if the last read succeeded. */
export async function readLastPoll(
  db: Db,
  siteId: SiteId,
): Promise<{ readonly at: Date | null; readonly errorCode: string | null }> {
  const [watch] = await db
    .select({ at: maasSiteWatches.lastPollAt, errorCode: maasSiteWatches.lastErrorCode })
    .from(maasSiteWatches)
    .where(eq(maasSiteWatches.siteId, siteId));
  return watch ?? { at: null, errorCode: null };
}
