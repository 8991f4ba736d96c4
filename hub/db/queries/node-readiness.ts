import type { NodeId } from "../../../shared/ids.ts";
import { inArray, sql } from "../orm.ts";
import { nodes } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";
import { readConditionFacts } from "./node-conditions.ts";
import { nodePolicies, typesIn } from "./node-profiles.ts";
import type { NodeRow } from "./node-reads.ts";

export type ReadinessRow = Pick<NodeRow, "node" | "policy" | "now" | "conditions">;

/** Reads the facts that decide whether the given nodes are ready, by three SQL statements for any number of nodes. */
export async function readReadiness(db: Db | Tx, nodeIds: readonly NodeId[]): Promise<ReadinessRow[]> {
  if (nodeIds.length === 0) return [];
  const rows = await db
    .select({ node: nodes, now: sql`now()`.mapWith(toDate) })
    .from(nodes)
    .where(inArray(nodes.id, [...nodeIds]));
  const policies = await nodePolicies(db, nodeIds);
  const conditions = await readConditionFacts(db, nodeIds, typesIn(policies.values()));
  return rows.map((row) => ({
    ...row,
    policy: policies.get(row.node.id) ?? null,
    conditions: conditions.filter(({ nodeId }) => nodeId === row.node.id),
  }));
}
