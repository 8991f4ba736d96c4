import { type SQL, type SQLWrapper, sql } from "../orm.ts";
import { maasSites, type Workflow, workflows } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { admitWhere } from "./workflows.ts";

/**
 * Admits waiting onboardings, within limits for the running onboardings of all hubs together (lifecycle 4.4). For each profile, at most
 * `batch_max_parallel` onboardings run at once. The limit of parallel onboardings of a site is the largest `batch_max_parallel` among the profiles of
 * the site's running and waiting onboardings. The hub admits a site's waiting onboardings in the order in which they were requested, whatever their
 * profile. An onboarding whose profile already runs its maximum keeps its place in the site's order and does not block the onboardings behind it. A
 * separate SQL statement first locks the rows of the sites, so the count of running onboardings includes those that another hub has just admitted.
 * `admitOnboardings` returns the workflows of the admitted onboardings.
 */
export async function admitOnboardings(tx: Tx, kind: string): Promise<Workflow[]> {
  const locked = await tx
    .select({ id: maasSites.id })
    .from(maasSites)
    .where(
      sql`exists (select 1 from ${workflows} w where w.site_id = ${maasSites.id} and w.kind = ${kind} and w.status = 'pending')`,
    )
    .for("no key update", { skipLocked: true });
  if (locked.length === 0) return [];
  const sites = sql.param(locked.map((site) => site.id));
  return admitWhere(tx, sql`${workflows.id} in (${admissible(kind, sites)})`);
}

/**
 * The SQL of `admissible` numbers the running onboardings of a profile or site before the waiting onboardings. The number of a waiting onboarding is
 * how many onboardings would run if the hub admitted that onboarding.
 */
const admissible = (kind: string, sites: SQLWrapper): SQL => sql`
  with at_hand as (
    select w.id, w.site_id, w.requested_at, w.status = 'pending' as waits, o.profile_id, p.batch_max_parallel as most
    from workflows w
    join node_onboardings o on o.onboarding_id = w.id
    join maas_site_profiles p on p.id = o.profile_id
    where w.kind = ${kind} and w.status in ('pending', 'running', 'compensating') and w.site_id = any(${sites}::uuid[])),
  of_profile as (
    select *, max(most) over (partition by site_id) as most_of_site,
      row_number() over (partition by profile_id order by waits, requested_at, id) as place
    from at_hand),
  of_site as (
    select *, row_number() over (partition by site_id order by waits, requested_at, id) as place_of_site
    from of_profile where not waits or place <= most)
  select id from of_site where waits and place_of_site <= most_of_site`;
