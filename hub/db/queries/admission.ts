import { type SQL, type SQLWrapper, sql } from "../orm.ts";
import { maasSites, type Workflow, workflows } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { stopFailedBatches } from "./batch-pauses.ts";
import { profileOf } from "./decommissions.ts";
import { admitWhere } from "./workflows.ts";

/**
 * A lane is a group of operations that share one limit of parallel operations at their site, e.g. all onboardings. A value of `Lane` is SQL that
 * selects the operations that share one limit: workflows `w`, each joined with `p`, the profile that limits the operation.
 */
type Lane = SQL;

export const ONBOARDINGS: Lane = sql`
  workflows w
  join node_onboardings o on o.onboarding_id = w.id
  join maas_site_profiles p on p.id = o.profile_id`;

/**
 * SQL that selects all decommissions of batches, of every mode, which share one limit of parallel operations at each site. The profile of a node's
 * last onboarding limits the node's decommission; without an onboarding, the site's default profile does.
 */
const BATCH_DECOMMISSIONS: Lane = sql`
  workflows w
  join node_decommissions d on d.decommission_id = w.id and w.batch_id is not null
  join maas_sites s on s.id = w.site_id
  left join maas_site_profiles p on p.id = coalesce(${profileOf(sql`d.node_id`)}, s.default_profile_id)`;

/**
 * A decommission outside a batch begins at once, because a person or the end of an allocation waits for that one operation. The decommissions of
 * batches begin only as far as the site's limit of parallel decommissions allows.
 */
export async function admitDecommissions(tx: Tx, mode: string): Promise<Workflow[]> {
  const single = await admitWhere(tx, sql`${workflows.kind} = ${mode} and ${workflows.batchId} is null`);
  return [...single, ...(await admitWithin(tx, mode, BATCH_DECOMMISSIONS))];
}

/**
 * Lets waiting operations of one kind begin as far as the limits of parallel operations allow, counted over all hubs (lifecycle 4.4). For each
 * profile at a site, at most `batch_max_parallel` onboardings, and as many decommissions of batches, run at once. A site's limit of parallel
 * onboardings is the largest `batch_max_parallel` among the profiles of its running and waiting onboardings; the limit for decommissions of batches
 * is found in the same way. The hub admits a site's waiting operations in the order of their requests, whatever profiles they have. An operation that
 * waits because of its profile's limit keeps its place in the site's queue, and does not block later operations of other profiles. `admitWithin`
 * first locks the rows of the sites, so its count of running operations includes operations that another hub has just admitted. Before `admitWithin`
 * counts operations, it pauses the batches with too many failures. An operation of a paused batch that has not begun does not count towards its
 * site's limit of parallel operations.
 */
export async function admitWithin(tx: Tx, kind: string, lane: Lane): Promise<Workflow[]> {
  const locked = await tx
    .select({ id: maasSites.id })
    .from(maasSites)
    .where(
      sql`exists (select 1 from ${workflows} w where w.site_id = ${maasSites.id} and w.kind = ${kind} and w.status = 'pending')`,
    )
    .for("no key update", { skipLocked: true });
  if (locked.length === 0) return [];
  const siteIds = locked.map((site) => site.id);
  await stopFailedBatches(tx, siteIds);
  const sites = sql.param(siteIds);
  return admitWhere(tx, sql`${workflows.id} in (${admissible(kind, lane, sites)})`);
}

/**
 * For each profile and each site, `admissible` numbers the running operations first and then the waiting operations. The number that `admissible`
 * gives to a waiting operation says how many operations would run if the hub let this one begin.
 */
const admissible = (kind: string, lane: Lane, sites: SQLWrapper): SQL => sql`
  with at_hand as (
    select w.id, w.kind, w.site_id, w.requested_at, w.status = 'pending' as waits, p.id as profile_id,
      coalesce(p.batch_max_parallel, 1) as most
    from ${lane}
    where w.status in ('pending', 'running', 'compensating') and w.site_id = any(${sites}::uuid[])
      and not (w.status = 'pending' and w.started_at is null and exists (
        select 1 from onboarding_batches b where b.id = w.batch_id and b.paused_at is not null))),
  of_profile as (
    select *, max(most) over (partition by site_id) as most_of_site,
      row_number() over (partition by site_id, profile_id order by waits, requested_at, id) as place
    from at_hand),
  of_site as (
    select *, row_number() over (partition by site_id order by waits, requested_at, id) as place_of_site
    from of_profile where not waits or place <= most)
  select id from of_site where waits and place_of_site <= most_of_site and kind = ${kind}`;
