import { FLAPPING } from "../../../shared/flapping.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { type SQL, sql } from "../orm.ts";
import type { Tx } from "../tx.ts";
import { profileOf } from "./decommissions.ts";

/**
 * SQL for the requirements of all readiness policies, one row each. In a readiness policy, a group `any` is one part, and so is each requirement of a
 * group `all`: a node meets a policy if it meets one requirement of each part.
 */
const requirements: SQL = sql`(
  select p.id as profile_id, g.place * 100 + case when g.value ? 'any' then 0 else r.place end as part, r.value ->> 'type' as type,
    r.value ->> 'status' as status, (r.value ->> 'max_age_seconds')::int as max_age, (r.value ->> 'deadline_seconds')::int as deadline
  from maas_site_profiles p
  cross join lateral jsonb_array_elements(p.readiness_policy) with ordinality g(value, place)
  cross join lateral jsonb_array_elements(coalesce(g.value -> 'any', g.value -> 'all')) with ordinality r(value, place)
  where p.readiness_policy <> '[]')`;

/** SQL that is true if the condition `c` flaps, as `isFlapping` of shared/flapping.ts decides. A flapping condition makes no node ready. */
export const flaps: SQL = sql`(c.flapping_since is not null and c.changed_at > now() - make_interval(secs => ${FLAPPING.holdSeconds}))`;

/**
 * SQL that is true if at least one profile has a readiness policy. The subquery in `anyPolicy` depends on no node, so PostgreSQL evaluates it once
 * for each statement.
 */
const anyPolicy: SQL = sql`exists (select from maas_site_profiles where readiness_policy <> '[]')`;

/**
 * SQL for the ids of the nodes that do not meet the readiness policies of their profiles, as `readinessOf` of hub/node/readiness-verdict.ts decides.
 * The SQL joins all active nodes with the few requirements of the policies, and costs nothing while no profile has a readiness policy.
 */
export const nodesWithoutPolicy: SQL = sql`(
  select x.node_id from (
    select n.id as node_id, n.generation, ${profileOf(sql`n.id`)} as profile_id from nodes n where n.status = 'active' and ${anyPolicy} offset 0) x
  join ${requirements} q on q.profile_id = x.profile_id
  left join node_conditions c on c.node_id = x.node_id and c.type = q.type and c.generation = x.generation and c.status = q.status
    and (c.expires_at is null or c.expires_at > now())
    and (q.max_age is null or c.received_at > now() - make_interval(secs => q.max_age)) and not ${flaps}
  group by x.node_id, q.part having count(c.type) = 0)`;

/**
 * A time limit of a node's readiness policy for one condition type that has passed: the condition is missing for too long, or its last report is too
 * old.
 */
export interface Lapse {
  readonly nodeId: NodeId;
  readonly type: string;
  readonly kind: "overdue" | "too_old";
  /** The time at which the readiness policy's time limit passed, to the microsecond. */
  readonly at: string;
}

const lookedUntil = sql`(select looked_until from condition_watch)`;

/**
 * Returns the time limits of readiness policies that passed after `looked_until`, the time of the last check, and at or before `until` (now if
 * `until` is null), the earliest first: about `most` of them, and all that passed at the same moment as the last one. Between two checks for passed
 * time limits, the limits of only few nodes pass, so PostgreSQL looks up few profiles.
 */
export async function newLapses(tx: Tx, until: string | null, most: number): Promise<Lapse[]> {
  const end = until === null ? sql`now()` : sql`${until}::timestamptz`;
  const within = (from: SQL, seconds: SQL): SQL =>
    sql`${from} > ${lookedUntil} - make_interval(secs => ${seconds}) and ${from} <= ${end} - make_interval(secs => ${seconds})`;
  const { rows } = await tx.execute<{ node_id: NodeId; type: string; kind: Lapse["kind"]; at: string }>(sql`
    select node_id, type, kind, at::text as at from (
      select n.id as node_id, q.type, 'overdue' as kind, n.generation_began_at + make_interval(secs => q.deadline) as at
      from ${requirements} q join nodes n on ${within(sql`n.generation_began_at`, sql`q.deadline`)}
      where n.generation > 0 and n.status not in ('deleted', 'retired') and ${profileOf(sql`n.id`)} = q.profile_id
        and not exists (select from node_conditions c where c.node_id = n.id and c.type = q.type and c.generation = n.generation)
      union
      select n.id, q.type, 'too_old', c.received_at + make_interval(secs => q.max_age)
      from ${requirements} q join node_conditions c on c.type = q.type and c.status = q.status and ${within(sql`c.received_at`, sql`q.max_age`)}
      join nodes n on n.id = c.node_id and n.generation = c.generation
      where n.status not in ('deleted', 'retired') and ${profileOf(sql`n.id`)} = q.profile_id) lapses
    where ${anyPolicy}
    order by at fetch first ${most} rows with ties`);
  return rows.map(({ node_id, ...rest }) => ({ nodeId: node_id, ...rest }));
}
