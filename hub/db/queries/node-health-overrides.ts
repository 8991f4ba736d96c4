import type { NodeId } from "../../../shared/ids.ts";
import { and, asc, eq, inArray, sql } from "../orm.ts";
import { type NodeHealthOverride, nodeHealthOverrides } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** The health overrides of the given nodes, ordered by source. */
export async function listHealthOverrides(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<readonly NodeHealthOverride[]> {
  if (nodeIds.length === 0) return [];
  return db
    .select()
    .from(nodeHealthOverrides)
    .where(inArray(nodeHealthOverrides.nodeId, [...nodeIds]))
    .orderBy(asc(nodeHealthOverrides.source));
}

/** Stores a health override. An older override of the same node and source is replaced. */
export async function writeHealthOverride(tx: Tx, override: Omit<NodeHealthOverride, "since">): Promise<void> {
  const row = { ...override, since: sql`now()` };
  await tx
    .insert(nodeHealthOverrides)
    .values(row)
    .onConflictDoUpdate({ target: [nodeHealthOverrides.nodeId, nodeHealthOverrides.source], set: row });
}

/** Removes and returns the node's override of the source, or returns null if the node has none. */
export async function deleteHealthOverride(tx: Tx, nodeId: NodeId, source: string): Promise<NodeHealthOverride | null> {
  const [row] = await tx
    .delete(nodeHealthOverrides)
    .where(and(eq(nodeHealthOverrides.nodeId, nodeId), eq(nodeHealthOverrides.source, source)))
    .returning();
  return row ?? null;
}
