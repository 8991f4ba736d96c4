import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { ConditionStatus } from "../../../shared/readiness.ts";
import { sql } from "../../db/orm.ts";
import type { Tx } from "../../db/tx.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_COUNTS = 200;
const MOST_CONDITIONS = 200;

const Count = z.strictObject({
  site_id: z.uuid().nullable(),
  status: z.string(),
  onboarding_mode: z.string(),
  nodes: z.int(),
  cordoned: z.int(),
  last_agent_contact_at: Timestamp.nullable(),
});
const ConditionCount = z.strictObject({
  type: z.string(),
  status: ConditionStatus,
  reason: z.string(),
  stale: z.boolean(),
  nodes: z.int(),
});
const Condition = z.strictObject({
  node_id: z.uuid(),
  hostname: z.string(),
  node_status: z.string(),
  type: z.string(),
  status: ConditionStatus,
  reason: z.string(),
  message: z.string(),
  source: z.string(),
  generation: z.int(),
  node_generation: z.int(),
  observed_at: Timestamp,
  expires_at: Timestamp.nullable(),
});

const STALE = sql`coalesce(c.expires_at <= now(), false)`;

async function readCounts(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Count> & { of: number }>(sql`
    select site_id, status, onboarding_mode, count(*)::int as nodes, count(cordon_reason)::int as cordoned,
      ${iso("max(last_agent_contact_at)")} as last_agent_contact_at, ${OF}
    from nodes group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit ${MOST_COUNTS}`);
  return bounded("counts", rows);
}

async function readConditionCounts(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof ConditionCount> & { of: number }>(sql`
    select c.type, c.status, c.reason, ${STALE} as stale, count(*)::int as nodes, ${OF}
    from node_conditions c join nodes n on n.id = c.node_id where n.status <> 'deleted'
    group by 1, 2, 3, 4 order by 5 desc, 1, 2, 3 limit ${MOST_COUNTS}`);
  return bounded("condition_counts", rows);
}

/** This section of the diagnostics lists conditions of nodes in service first, because a retired node needs no agent. */
async function readConditions(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Condition> & { of: number }>(sql`
    select n.id as node_id, n.hostname, n.status as node_status, c.type, c.status, c.reason, c.message, c.source,
      c.generation, n.generation as node_generation, ${iso("c.observed_at")} as observed_at,
      ${iso("c.expires_at")} as expires_at, ${OF}
    from node_conditions c join nodes n on n.id = c.node_id
    where n.status <> 'deleted' and (c.status <> 'True' or ${STALE})
    order by n.status in ('retired', 'removing'), c.observed_at desc, n.id, c.type limit ${MOST_CONDITIONS}`);
  return bounded("conditions", rows);
}

export const nodes = databaseSection({
  name: "nodes",
  about: "Nodes by status, their conditions counted, and the latest conditions that are not True or are stale",
  data: z.strictObject({
    counts: z.array(Count),
    condition_counts: z.array(ConditionCount),
    conditions: z.array(Condition),
  }),
  read: async (tx) => {
    const counts = await readCounts(tx);
    const conditionCounts = await readConditionCounts(tx);
    const conditions = await readConditions(tx);
    return {
      data: { counts: counts.shown, condition_counts: conditionCounts.shown, conditions: conditions.shown },
      leftOut: [...counts.leftOut, ...conditionCounts.leftOut, ...conditions.leftOut],
    };
  },
});
