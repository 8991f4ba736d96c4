import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, asc, eq, inArray, sql } from "../orm.ts";
import { type NodeHealthOverride, nodeHealthOverrides, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

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

export type NewHealthOverride = Omit<NodeHealthOverride, "since" | "neededErase"> &
  Partial<Pick<NodeHealthOverride, "neededErase">>;

/** Stores a health override in place of an older override of the same node and source. */
export async function writeHealthOverride(tx: Tx, override: NewHealthOverride): Promise<void> {
  const row = { neededErase: null, ...override, since: sql`now()` };
  await tx
    .insert(nodeHealthOverrides)
    .values(row)
    .onConflictDoUpdate({ target: [nodeHealthOverrides.nodeId, nodeHealthOverrides.source], set: row });
}

export async function deleteHealthOverride(tx: Tx, nodeId: NodeId, source: string): Promise<NodeHealthOverride | null> {
  const [row] = await tx
    .delete(nodeHealthOverrides)
    .where(and(eq(nodeHealthOverrides.nodeId, nodeId), eq(nodeHealthOverrides.source, source)))
    .returning();
  return row ?? null;
}

/**
 * Moves health overrides about a machine from deleted nodes of the site to the machine's present node. A node that has an override of the same source
 * keeps its own override.
 */
export async function inheritHealthOverrides(
  tx: Tx,
  heir: { readonly nodeId: NodeId; readonly siteId: SiteId; readonly maasSystemId: string },
): Promise<readonly NodeHealthOverride[]> {
  const left = await tx
    .delete(nodeHealthOverrides)
    .where(
      and(
        eq(nodeHealthOverrides.target, heir.maasSystemId),
        inArray(
          nodeHealthOverrides.nodeId,
          tx
            .select({ id: nodes.id })
            .from(nodes)
            .where(and(eq(nodes.siteId, heir.siteId), eq(nodes.status, "deleted"))),
        ),
      ),
    )
    .returning();
  if (left.length === 0) return [];
  const rows = left.map((override) => ({ ...override, nodeId: heir.nodeId }));
  return tx.insert(nodeHealthOverrides).values(rows).onConflictDoNothing().returning();
}
