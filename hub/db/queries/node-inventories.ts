import { type HostGpuSizes, withSizes } from "../../../shared/gpu-sizes.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { Inventory } from "../../../shared/inventory.ts";
import { and, eq, type SQL, sql } from "../orm.ts";
import { agentSessions, nodeInventories } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isUsedByTenant } from "./node-baselines.ts";

/**
 * Keeps the inventory of the node's host that the agent's session has just sent. The sizes of GPUs count only from an inventory of a system that no
 * tenant has used, because a tenant with the rights of root could change what the agent reads.
 */
export async function keepInventory(db: Db | Tx, nodeId: NodeId, inventory: Inventory): Promise<void> {
  await keep(db, nodeId, inventory);
}

/**
 * Keeps an inventory from a task's result, which may arrive late. Returns false, and changes nothing, if the stored inventory is newer: the agent read
 * the stored inventory later in the same boot, or the stored inventory is of the boot of the agent's newest session and the given inventory is of
 * another boot. A closed session counts too, because the hub may close it only for its silence.
 */
export async function keepUnlessOlder(db: Db | Tx, nodeId: NodeId, inventory: Inventory): Promise<boolean> {
  return keep(db, nodeId, inventory, isNoNewerThan(inventory));
}

async function keep(db: Db | Tx, nodeId: NodeId, inventory: Inventory, setWhere?: SQL): Promise<boolean> {
  const isOwn = inventory.gpus.length > 0 && !(await isUsedByTenant(db, nodeId));
  const sizes = isOwn ? { gpuSizes: withSizes((await readOwnSizes(db, nodeId)) ?? {}, inventory.gpus) } : {};
  const set = { inventory, reportedAt: sql`now()`, ...sizes };
  const kept = await db
    .insert(nodeInventories)
    .values({ nodeId, inventory, ...sizes })
    .onConflictDoUpdate({ target: nodeInventories.nodeId, set, ...(setWhere && { setWhere }) })
    .returning({ nodeId: nodeInventories.nodeId });
  return kept.length > 0;
}

/**
 * SQL that is true if the stored inventory of the node is not newer than the given inventory. Two inventories of one boot without an uptime have no
 * order, so the last to arrive counts.
 */
const isNoNewerThan = ({ boot_id, read_at_uptime }: Inventory): SQL => {
  const stored = nodeInventories.inventory;
  return sql`case when ${stored} ->> 'boot_id' = ${boot_id}
    then coalesce((${stored} ->> 'read_at_uptime')::float8 <= ${read_at_uptime ?? null}::float8, true)
    else not exists (select from ${agentSessions} where ${agentSessions.nodeId} = ${nodeInventories.nodeId}
      and ${agentSessions.bootId} = ${stored} ->> 'boot_id') end`;
};

async function readOwnSizes(db: Db | Tx, nodeId: NodeId): Promise<HostGpuSizes | null> {
  const [row] = await db
    .select({ gpuSizes: nodeInventories.gpuSizes })
    .from(nodeInventories)
    .where(eq(nodeInventories.nodeId, nodeId));
  return row?.gpuSizes ?? null;
}

/**
 * Reads how much memory each GPU of the node's host has according to inventories from before a tenant's use. If the database has no GPU sizes because
 * a hub of an older version stored the inventory, `readGpuSizes` uses the newest inventory.
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
