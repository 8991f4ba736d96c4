import { type HostGpuSizes, withSizes } from "../../../shared/gpu-sizes.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { Inventory } from "../../../shared/inventory.ts";
import { and, eq, sql } from "../orm.ts";
import { agentSessions, nodeInventories } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isUsedByTenant } from "./node-baselines.ts";

/**
 * Keeps the newest inventory of the node's host. The sizes of GPUs count only from an inventory of a system that no tenant has used, because a tenant
 * with the rights of root could change what the agent reads.
 */
export async function keepInventory(db: Db | Tx, nodeId: NodeId, inventory: Inventory): Promise<void> {
  const isOwn = inventory.gpus.length > 0 && !(await isUsedByTenant(db, nodeId));
  const sizes = isOwn ? { gpuSizes: withSizes((await readOwnSizes(db, nodeId)) ?? {}, inventory.gpus) } : {};
  await db
    .insert(nodeInventories)
    .values({ nodeId, inventory, ...sizes })
    .onConflictDoUpdate({ target: nodeInventories.nodeId, set: { inventory, reportedAt: sql`now()`, ...sizes } });
}

async function readOwnSizes(db: Db | Tx, nodeId: NodeId): Promise<HostGpuSizes | null> {
  const [row] = await db
    .select({ gpuSizes: nodeInventories.gpuSizes })
    .from(nodeInventories)
    .where(eq(nodeInventories.nodeId, nodeId));
  return row?.gpuSizes ?? null;
}

/**
 * Reads how much memory each GPU of the node's host has according to inventories from before a tenant's use. If a hub of an older version kept no
 * sizes, the newest inventory decides.
 */
export async function readGpuSizes(db: Db | Tx, nodeId: NodeId): Promise<HostGpuSizes> {
  return (await readOwnSizes(db, nodeId)) ?? withSizes({}, (await readInventory(db, nodeId))?.gpus ?? []);
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
