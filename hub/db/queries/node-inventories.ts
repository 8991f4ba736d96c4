import type { NodeId } from "../../../shared/ids.ts";
import { Inventory } from "../../../shared/inventory.ts";
import { eq, sql } from "../orm.ts";
import { nodeInventories } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export async function keepInventory(db: Db, nodeId: NodeId, inventory: Inventory): Promise<void> {
  await db
    .insert(nodeInventories)
    .values({ nodeId, inventory })
    .onConflictDoUpdate({ target: nodeInventories.nodeId, set: { inventory, reportedAt: sql`now()` } });
}

/** The newest inventory of the node's host; null if the hub has no inventory or cannot read it. */
export async function readInventory(db: Db | Tx, nodeId: NodeId): Promise<Inventory | null> {
  const [row] = await db
    .select({ inventory: nodeInventories.inventory })
    .from(nodeInventories)
    .where(eq(nodeInventories.nodeId, nodeId));
  return Inventory.safeParse(row?.inventory).data ?? null;
}
