import { CONDITION_TYPES, type ConditionRule } from "../../../shared/condition-types.ts";
import { MOST_GPUS } from "../../../shared/gpu-memory.ts";
import { LATE_REPORT_SECONDS } from "../../../shared/power.ts";
import { type SQL, sql } from "../orm.ts";
import { knowsComparedItems } from "../schema/index.ts";
import { profileOf } from "./decommissions.ts";
import { nodesOfUnknownPast } from "./node-adoptions.ts";
import { nodesBarredByHealth } from "./node-health-overrides.ts";
import { flaps, nodesWithoutPolicy } from "./readiness-policies.ts";
import { nodesInRepair } from "./repair-cases.ts";
import { isPlan } from "./tasks.ts";

/** SQL that is true if the condition `c` has not expired. */
const isFresh = sql`(c.expires_at is null or c.expires_at > now())`;

const RULES = Object.entries<ConditionRule>(CONDITION_TYPES);
const about = sql`from node_conditions c where c.node_id = m.id`;
const isOfNow = sql`c.generation = m.generation`;
/** SQL that is true if the condition `c` has the reason that the rule of the condition's type accepts even though the condition is not True. */
const isTolerated = sql.join(
  [
    sql`false`,
    ...RULES.flatMap(([type, { tolerates }]) =>
      tolerates === undefined ? [] : [sql`(c.type = ${type} and ${isFresh} and c.reason = ${tolerates})`],
    ),
  ],
  sql` or `,
);

/**
 * SQL that is true if the node `m` has a condition of the type that is True, or whose reason the type's rule accepts, so that this type keeps no new
 * work off the node.
 */
const isFulfilled = (type: string, { tolerates }: ConditionRule): SQL => {
  const holds = sql`exists (select ${about} and c.type = ${type} and ${isOfNow} and c.status = 'True' and ${isFresh})`;
  return tolerates === undefined
    ? holds
    : sql`(${holds} or exists (select ${about} and c.type = ${type} and ${isOfNow} and (${isTolerated})))`;
};

/** SQL that is true if the condition `c` is of a type that concerns only networks of one owner, and another owner runs the network of the node `m`. */
const isOfOtherNetwork = sql.join(
  RULES.flatMap(([type, { network }]) =>
    network === undefined ? [] : [sql`(c.type = ${type} and m.network_owned_by <> ${network})`],
  ),
  sql` or `,
);

/**
 * SQL that is true if no condition of the given types keeps new work off the node `m`. `noneBars` is for condition types that keep new work off a
 * node only if the node has such a condition, and not if it has none.
 */
const noneBars = (
  types: readonly string[],
): SQL => sql`not exists (select ${about} and c.type = any(${sql.param([...types])}::text[])
  and ${isOfNow} and (c.status <> 'True' or c.expires_at <= now()) and not (${isTolerated}) and not (${isOfOtherNetwork}))`;

/** The types of conditions that can keep new work off a node. */
const BARRING = RULES.flatMap(([type, { bars }]) =>
  bars === "missing_or_not_true" || bars === "not_true" ? [type] : [],
);
/**
 * SQL that is true unless the node `m` has a flapping condition that is True and that can keep new work off the node. Few conditions flap, and the
 * index `node_conditions_flapping_idx` contains only conditions that flap or have flapped.
 */
const noneFlaps = sql`not exists (select ${about} and c.flapping_since is not null and c.type = any(${sql.param(BARRING)}::text[])
  and ${isOfNow} and c.status = 'True' and ${flaps} and not (${isTolerated}) and not (${isOfOtherNetwork}))`;

/** SQL that is true if the conditions of the node `m` let it take new work, as `barredBy` of hub/node/readiness-verdict.ts decides. */
const conditions: SQL = sql.join(
  [
    ...RULES.flatMap(([type, rule]) => (rule.bars === "missing_or_not_true" ? [isFulfilled(type, rule)] : [])),
    noneBars(RULES.flatMap(([type, { bars }]) => (bars === "not_true" ? [type] : []))),
    noneFlaps,
  ],
  sql` and `,
);

/** SQL that is true if users can log in to the host of the node `m`, because the host was not drained or was opened again, as `closedHosts` decides. */
const isOpen = sql`coalesce((
  select t.type = 'node.undrain' and t.state = 'succeeded' from tasks t
  where t.node_id = m.id and t.type in ('node.drain', 'node.undrain') and not ${isPlan("t")}
    and (t.type = 'node.undrain' or t.attempts > 0)
  order by t.created_at desc, t.id desc limit 1), true)`;

/** SQL that is true unless a power action runs on the host of the node `m`, or has switched the host off, as `powerIntentOf` decides. */
const isNotAway = sql`not exists (
  select from (select p.* from power_actions p where p.node_id = m.id order by p.requested_at desc limit 1) p
  where p.generation = m.generation and (p.state = 'running' or (p.state = 'done' and p.verb = 'off'
    and (m.last_agent_contact_at is null
      or m.last_agent_contact_at <= p.finished_at + make_interval(secs => ${LATE_REPORT_SECONDS})))))`;

/** SQL for a column of the profile of the node `m`; null if the node has no profile. */
const ofProfile = (column: "turnover_mode" | "gpu_claim_level"): SQL =>
  sql`(select policy.${sql.raw(column)} from maas_site_profiles policy where policy.id = ${profileOf(sql`m.id`)})`;

/**
 * SQL that is true if the node `m` has what a cleaning after a tenant without root rights needs: a complete snapshot of its clean system, or a
 * profile that reimages it.
 */
const hasNeededBaseline = sql`(
  exists (select from node_baselines b where b.node_id = m.id and b.generation = m.generation and ${knowsComparedItems})
  or (m.onboarding_mode not in ('manual', 'external') and ${ofProfile("turnover_mode")} = 'reimage'))`;

/** SQL that is true if a cleaning of the node `m` can reach the `gpu_claim_level` of the node's profile, as `whyClaimImpossible` decides. */
const canMeetClaim = sql`(
  m.gpus_total = 0
  or (m.gpus_total <= ${MOST_GPUS} and exists (select from skus k where k.id = m.sku and k.gpu_vendor in ('nvidia', 'amd')))
  or coalesce(${ofProfile("gpu_claim_level")}, 'reset_only') = 'reset_only')`;

/**
 * SQL for the ids of all nodes that can take a tenant without root rights. The SQL decides as `schedulability` of hub/node/schedulable.ts does, and
 * test/properties/node-filters.test.ts compares both.
 *
 * The inner SELECT of `schedulableNodes` reads each joined table by a whole index, which is fast because the SELECT covers all nodes at once. The
 * words `is not true` make PostgreSQL look a node up in a hash table and not plan a join, because planning a dozen joins takes longer than the joins.
 * Each condition of the outer SELECT looks up rows of one node, so PostgreSQL evaluates it only for the nodes that the inner SELECT of
 * `schedulableNodes` returns. Without OFFSET 0 in the inner SELECT of `schedulableNodes`, PostgreSQL would evaluate the conditions of the outer
 * SELECT for every node.
 */
export const schedulableNodes: SQL = sql`(
  select m.id from (
    select m.id, m.generation, m.onboarding_mode, m.sku, m.gpus_total, m.last_agent_contact_at from nodes m
    where m.status = 'active' and m.cordon_reason is null and m.runs_agent
      and (m.id in (select a.node_id from allocations a where a.status <> 'ended')) is not true
      and (m.id in ${nodesBarredByHealth}) is not true
      and (m.id in ${nodesInRepair}) is not true
      and (m.id in ${nodesOfUnknownPast}) is not true
      and (m.id in ${nodesWithoutPolicy}) is not true
      and ${conditions}
    offset 0) m
  where ${canMeetClaim} and ${hasNeededBaseline} and ${isOpen} and ${isNotAway})`;
