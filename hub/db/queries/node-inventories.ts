import type { NodeId } from "../../../shared/ids.ts";
import { Inventory } from "../../../shared/inventory.ts";
import { and, eq, sql } from "../orm.ts";
import { agentSessions, nodeInventories } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export async function keepInventory(db: Db | Tx, nodeId: NodeId, inventory: Inventory): Promise<void> {
  await db
    .insert(nodeInventories)
    .values({ nodeId, inventory })
    .onConflictDoUpdate({ target: nodeInventories.nodeId, set: { inventory, reportedAt: sql`now()` } });
}

/** The inventory that the agent of the node's open session sent; null if the stored inventory is of another boot, and so perhaps of another host. */
export async function readSessionInventory(
  tx: Tx,
  node: { readonly id: NodeId; readonly generation: number },
): Promise<Inventory | null> {
  const [row] = await tx
    .select({ inventory: nodeInventories.inventory })
    .from(nodeInventories)
    .innerJoin(agentSessions, eq(agentSessions.nodeId, nodeInventories.nodeId))
    .where(
      and(
        eq(nodeInventories.nodeId, node.id),
        eq(agentSessions.state, "open"),
        eq(agentSessions.generation, node.generation),
        sql`${nodeInventories.inventory} ->> 'boot_id' = ${agentSessions.bootId}`,
      ),
    );
  return Inventory.safeParse(row?.inventory).data ?? null;
}

export async function forgetInventory(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx.delete(nodeInventories).where(eq(nodeInventories.nodeId, nodeId));
}

/** The newest inventory of the node's host; null if the hub has no inventory or cannot read it. */
export async function readInventory(db: Db | Tx, nodeId: NodeId): Promise<Inventory | null> {
  const [row] = await db
    .select({ inventory: nodeInventories.inventory })
    .from(nodeInventories)
    .where(eq(nodeInventories.nodeId, nodeId));
  return Inventory.safeParse(row?.inventory).data ?? null;
}
