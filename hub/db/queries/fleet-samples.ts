import type { OverviewHistory } from "../../../shared/api/overview-history.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { tryLockUntilCommit } from "../advisory-locks.ts";
import { and, eq, sql } from "../orm.ts";
import { fleetSamples, nodes, workflows } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";
import { schedulableNodes } from "./schedulable-nodes.ts";

/**
 * Seconds between two samples of the fleet. The hubs count the fleet's nodes and waiting operations at whole multiples of this time, so that all hubs
 * agree on the time of the next sample.
 */
const SAMPLE_SECONDS = 600;
const MOST_POINTS = 144;

const binOf = (seconds: number, time: unknown) =>
  sql`date_bin(make_interval(secs => ${seconds}), ${time}, timestamptz 'epoch')`;

/**
 * Stores the numbers of the fleet's nodes and waiting operations (a sample) for the present time step, unless a hub has already stored them.
 * `sampleFleet` returns the number of rows that it added to the database.
 */
export async function sampleFleet(tx: Tx): Promise<number> {
  if (!(await tryLockUntilCommit(tx, "fleet_sample"))) return 0;
  const time = binOf(SAMPLE_SECONDS, sql`now()`);
  const { rowCount } = await tx.execute(sql`
    with by_status as (
      select ${nodes.siteId} as site_id, ${nodes.status} as status, count(*)::int as count,
        (count(*) filter (where ${nodes.id} in ${schedulableNodes}))::int as schedulable
      from ${nodes} where ${nodes.status} <> 'deleted' group by 1, 2),
    of_nodes as (
      select site_id, jsonb_object_agg(status, count) as nodes, sum(schedulable)::int as schedulable from by_status group by site_id),
    of_operations as (
      select site_id, count(*)::int as waiting from ${workflows}
      where status in ('failed_retryable', 'failed_manual_intervention') group by site_id)
    insert into ${fleetSamples} (sampled_at, site_id, nodes, schedulable, waiting)
    select ${time}, coalesce(n.site_id, o.site_id), coalesce(n.nodes, '{}'), coalesce(n.schedulable, 0), coalesce(o.waiting, 0)
    from of_nodes n full join of_operations o on n.site_id = o.site_id
    where not exists (select from ${fleetSamples} where sampled_at = ${time})`);
  return rowCount ?? 0;
}

/**
 * For each time step of the fleet's history, `readFleetHistory` uses the last sample in the step. A time step of the fleet's history is a whole
 * multiple of the time between two samples of the fleet.
 */
export async function readFleetHistory(
  db: Db,
  reach: Reach,
  { hours, siteId }: { readonly hours: number; readonly siteId: SiteId | undefined },
): Promise<OverviewHistory> {
  const step = SAMPLE_SECONDS * Math.ceil((hours * 3_600) / (SAMPLE_SECONDS * MOST_POINTS));
  const within = and(
    isWithin(reach, { site: fleetSamples.siteId }),
    siteId === undefined ? undefined : eq(fleetSamples.siteId, siteId),
  );
  const { rows } = await db.execute<{
    at: string;
    nodes: Record<string, number>;
    schedulable: number;
    waiting: number;
  }>(
    sql`
    with last as (
      select max(sampled_at) as sampled_at from ${fleetSamples}
      where sampled_at > now() - make_interval(hours => ${hours}) group by ${binOf(step, sql`sampled_at`)}),
    chosen as (
      select ${fleetSamples.sampledAt} as at, ${fleetSamples.nodes} as nodes, ${fleetSamples.schedulable} as schedulable,
        ${fleetSamples.waiting} as waiting
      from last join ${fleetSamples} on ${fleetSamples.sampledAt} = last.sampled_at where ${within ?? sql`true`}),
    counts as (
      select at, jsonb_object_agg(status, count) as nodes from (
        select at, status, sum(value::int)::int as count from chosen, jsonb_each_text(nodes) of (status, value) group by at, status) s
      group by at),
    sums as (select at, sum(schedulable)::int as schedulable, sum(waiting)::int as waiting from chosen group by at)
    select last.sampled_at::text as at, coalesce(counts.nodes, '{}') as nodes, coalesce(sums.schedulable, 0) as schedulable,
      coalesce(sums.waiting, 0) as waiting
    from last left join counts on counts.at = last.sampled_at left join sums on sums.at = last.sampled_at order by last.sampled_at`,
  );
  return { step_seconds: step, points: rows.map((row) => ({ ...row, at: toDate(row.at).toISOString() })) };
}
