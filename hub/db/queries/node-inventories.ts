import type { NodeId } from "../../../shared/ids.ts";
import type { Inventory } from "../../../shared/inventory.ts";
import { sql } from "../orm.ts";
import { nodeInventories } from "../schema/index.ts";
import type { Db } from "../tx.ts";

export async function keepInventory(db: Db, nodeId: NodeId, inventory: Inventory): Promise<void> {
  await db
    .insert(nodeInventories)
    .values({ nodeId, inventory })
    .onConflictDoUpdate({ target: nodeInventories.nodeId, set: { inventory, reportedAt: sql`now()` } });
}
