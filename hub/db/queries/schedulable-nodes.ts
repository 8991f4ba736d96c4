import { CONDITION_TYPES, type ConditionRule } from "../../../shared/condition-types.ts";
import { MOST_GPUS } from "../../../shared/gpu-memory.ts";
import { COMPARED_ITEMS } from "../../../shared/residue/items.ts";
import { type SQL, sql } from "../orm.ts";
import { profileOf } from "./decommissions.ts";
import { pastIsUnknown } from "./node-adoptions.ts";
import { isPlan } from "./tasks.ts";

/** SQL that is true if the condition `c` has expired. */
const isStale = sql`coalesce(c.expires_at <= now(), false)`;

/** SQL that is true if the condition of the type lets the node `m` take new work, as `barredBy` of hub/node/schedulable.ts decides. */
function letsWork(type: string, { bars, tolerates }: ConditionRule): SQL[] {
  if (bars === "never") return [];
  const about = sql`from node_conditions c where c.node_id = m.id and c.type = ${type}`;
  const tolerated = tolerates === undefined ? sql`false` : sql`(not ${isStale} and c.reason = ${tolerates})`;
  const now = sql`c.generation = m.generation`;
  if (bars === "missing_or_not_true")
    return [sql`exists (select 1 ${about} and (${tolerated} or (${now} and not ${isStale} and c.status = 'True')))`];
  return [sql`not exists (select 1 ${about} and not ${tolerated} and ${now} and (${isStale} or c.status <> 'True'))`];
}

/** SQL that is true if users can log in to the host of the node `m`, as `closedHosts` decides. */
const isOpen = sql`coalesce((
  select t.type = 'node.undrain' and t.state = 'succeeded' from tasks t
  where t.node_id = m.id and t.type in ('node.drain', 'node.undrain') and not ${isPlan("t")}
    and (t.type = 'node.undrain' or t.attempts > 0)
  order by t.created_at desc, t.id desc limit 1), true)`;

/** SQL that is true if the turnover after a tenant without root rights finds all that it needs in the baseline of the node `m`. */
const hasNeededBaseline = sql`(
  (m.onboarding_mode <> 'manual' and policy.turnover_mode = 'reimage')
  or exists (select 1 from node_baselines b where b.node_id = m.id and b.generation = m.generation
    and b.snapshot is not null and b.known_items ?& ${sql.param(COMPARED_ITEMS)}::text[]))`;

/** SQL that is true if a cleaning of the node `m` can reach the claim level of its profile, as `whyClaimImpossible` decides. */
const canMeetClaim = sql`(
  policy.gpu_claim_level is null or policy.gpu_claim_level = 'reset_only' or m.gpus_total = 0
  or (m.gpus_total <= ${MOST_GPUS} and exists (select 1 from skus k where k.id = m.sku and k.gpu_vendor in ('nvidia', 'amd'))))`;

const conditions = Object.entries<ConditionRule>(CONDITION_TYPES).flatMap(([type, rule]) => letsWork(type, rule));

/**
 * SQL for the ids of all nodes that can take a tenant without root rights. The SQL decides as `schedulability` of hub/node/schedulable.ts does, and
 * test/properties/node-filters.test.ts compares both.
 */
export const schedulableNodes: SQL = sql`(
  select m.id from nodes m
  left join maas_site_profiles policy on policy.id = ${profileOf(sql`m.id`)}
  where m.status = 'active' and m.cordon_reason is null
    and not exists (select 1 from allocations a where a.node_id = m.id and a.status <> 'ended')
    and not exists (select 1 from node_health_overrides h where h.node_id = m.id)
    and ${sql.join(conditions, sql` and `)}
    and ${canMeetClaim} and ${hasNeededBaseline} and ${isOpen} and not ${pastIsUnknown(sql`m.id`)})`;
