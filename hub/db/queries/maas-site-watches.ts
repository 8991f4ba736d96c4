import type { SiteId } from "../../../shared/ids.ts";
import { type AnyPgColumn, and, eq, inArray, isNotNull, like, or, type SQL, sql, union } from "../orm.ts";
import { type MaasSiteWatch, maasSiteWatches, nodeOnboardings, workflows } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface SiteWatch {
  readonly siteId: SiteId;
  readonly ours: boolean;
  /** Somebody asks for a look at once, and no look has failed since. */
  readonly wake: boolean;
  /** When another hub's lease lapses unless it is renewed; 0 for a site of ours. */
  readonly lapsesInMs: number;
}

/**
 * Renews the leases of this hub on `sites`, takes free and lapsed ones, and waits for nobody's lock: a row that is locked is left for the next time. To
 * renew, the row is locked less than to take it over, so that a transaction which `holdsFence` keeps others out and our own renewal not. The fence
 * rises only when the lease changes hands, so a hub that lost it can write nothing more.
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
 * All sites to be watched, in one statement whatever their number: leases of this hub are renewed, free and lapsed ones taken. It is what every hub
 * asks about once a second, so a row that another hub holds is only read. One of ours that could not be renewed now stays ours until another hub has
 * it. A disabled site is watched until what was begun there has ended (lifecycle 3.5).
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

/** What the site's looks have left, as it is when one begins. */
export interface HeldWatch extends MaasSiteWatch {
  /** How long ago the last sweep had begun, by the database's clock, which has written that down; null where none has. */
  readonly sinceSweepMs: number | null;
}

/** Takes or renews the lease on watching a site; null while another hub holds it, or is about to. */
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

/** Whether the site is still this watcher's; until the transaction ends nobody can take it over, while the lease goes on being renewed. */
export async function holdsFence(tx: Tx, siteId: SiteId, fence: number): Promise<boolean> {
  const rows = await tx
    .select({ siteId: maasSiteWatches.siteId })
    .from(maasSiteWatches)
    .where(and(eq(maasSiteWatches.siteId, siteId), eq(maasSiteWatches.fence, fence)))
    .for("key share");
  return rows.length > 0;
}

export interface LookRecord {
  /** How far the feed has been read; null where it could never be. */
  readonly place: { readonly cursor: number; readonly mark: string | null } | null;
  /** False when MAAS has given neither its events nor any machine. */
  readonly hasRead: boolean;
  /** The feed went back: what an earlier sweep has seen counts no more. */
  readonly startsAnew: boolean;
  /** How long ago a sweep that has just ended had begun, in milliseconds; null when none has. */
  readonly sweptForMs: number | null;
  /** The wake request that this look has answered; a newer one stays. */
  readonly wakeAnswered: Date | null;
  /** Likewise the request for a sweep. */
  readonly sweepAnswered: Date | null;
  /** Machines of a list just read that could not be read; null when no list was. */
  readonly unreadable: { readonly machines: number; readonly systemIds: readonly string[] } | null;
  /** False while a sweep is owed that has failed: its error stays to be seen. */
  readonly clearsError: boolean;
}

/**
 * False when the lease went to another hub meanwhile: then nothing of the look may be kept. It comes last in its transaction, for it locks the row that
 * all hubs ask about each second to keep the leases of all sites.
 */
export async function recordLook(tx: Tx, siteId: SiteId, fence: number, look: LookRecord): Promise<boolean> {
  const rows = await tx
    .update(maasSiteWatches)
    .set({
      eventCursor: look.place?.cursor ?? null,
      eventMark: look.place?.mark ?? null,
      ...(look.hasRead ? { lastPollAt: sql`now()` } : {}),
      ...(look.sweptForMs === null
        ? look.startsAnew
          ? { lastSweepAt: null }
          : {}
        : { lastSweepAt: sql`now() - make_interval(secs => ${look.sweptForMs / 1000})` }),
      ...(look.wakeAnswered === null
        ? {}
        : {
            wakeRequestedAt: unlessNewer(maasSiteWatches.wakeRequestedAt, look.wakeAnswered),
          }),
      ...(look.sweepAnswered === null
        ? {}
        : { sweepRequestedAt: unlessNewer(maasSiteWatches.sweepRequestedAt, look.sweepAnswered) }),
      ...(look.unreadable === null
        ? {}
        : { unreadableMachines: look.unreadable.machines, unreadableSystemIds: [...look.unreadable.systemIds] }),
      ...(look.clearsError ? { consecutiveFailures: 0, lastErrorCode: null } : {}),
    })
    .where(and(eq(maasSiteWatches.siteId, siteId), eq(maasSiteWatches.fence, fence)))
    .returning({ siteId: maasSiteWatches.siteId });
  return rows.length > 0;
}

/** Null, unless somebody has asked again since; the answered time has lost its microseconds on its way. */
const unlessNewer = (column: AnyPgColumn, answered: Date) =>
  sql`case when ${column} <= ${answered.toISOString()}::timestamptz + interval '1 millisecond' then null else ${column} end`;

/**
 * Begins the site's watch anew, as before its first look. The fence rises, so that a look or a sweep under way, which asks the region that was, can
 * write nothing more, and the hub that watches forgets what it remembers of that region's feed.
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

/** Has the site's watcher look at once; `sweep`: at all machines. */
export async function requestLook(tx: Tx, siteId: SiteId, { sweep }: { readonly sweep: boolean }): Promise<void> {
  const now = { wakeRequestedAt: sql`now()`, ...(sweep ? { sweepRequestedAt: sql`now()` } : {}) };
  await tx
    .insert(maasSiteWatches)
    .values({ siteId, ...now })
    .onConflictDoUpdate({ target: maasSiteWatches.siteId, set: now });
}

/** The same, of all machines, where the site was ever watched. */
export async function requestSweep(tx: Tx, siteId: SiteId): Promise<void> {
  await tx
    .update(maasSiteWatches)
    .set({ wakeRequestedAt: sql`now()`, sweepRequestedAt: sql`now()` })
    .where(eq(maasSiteWatches.siteId, siteId));
}

export async function recordFailedLook(db: Db, siteId: SiteId, fence: number, code: string): Promise<number> {
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

/** Machines of the site that a workflow waits on right now, and those whose hosts an onboarding waits for. */
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

/** When the site's watcher last asked MAAS; null before its first time. */
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
