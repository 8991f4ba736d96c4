import type { NodeId } from "../../../shared/ids.ts";
import { FIRST_TENANT_UID, LAST_TENANT_UID } from "../../../shared/tenant-uids.ts";
import { eq, inArray, sql } from "../orm.ts";
import { nodeInventories, nodeMaasState, nodes, tenantUids } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { readInventory } from "./node-inventories.ts";

/** The most by which one new account raises the highest used uid of a machine, so that a false report of a host cannot use up the machine's uids. */
const MOST_SKIPPED = 1_000;

interface Machine {
  readonly names: readonly string[];
  /** Identifies the system that the host runs now, by the node's id and generation. */
  readonly system: string;
}

/**
 * Returns all identifiers by which the hub knows the machine of a node, sorted, so that two transactions lock the rows in the same order. A UUID that
 * many nodes report names no machine, because some makers give one UUID to all their machines, and these would use up one another's uids.
 */
async function machineOf(tx: Tx, nodeId: NodeId): Promise<Machine> {
  const [row] = await tx
    .select({ generation: nodes.generation, systemId: nodeMaasState.maasSystemId })
    .from(nodes)
    .leftJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
    .where(eq(nodes.id, nodeId));
  const uuid = (await readInventory(tx, nodeId))?.system.uuid.trim().toLowerCase() ?? "";
  const names = [
    `node:${nodeId}`,
    ...(row?.systemId == null ? [] : [`maas:${row.systemId}`]),
    ...(uuid === "" || (await isOfMany(tx, uuid)) ? [] : [`uuid:${uuid}`]),
  ];
  return { names: names.toSorted(), system: `${nodeId}/${row?.generation ?? 0}` };
}

/** Until its old node is removed, a machine that was enlisted in MAAS anew has two nodes, so two nodes may have the same hardware UUID. */
const MOST_NODES_OF_A_MACHINE = 2;
/** True if more than `MOST_NODES_OF_A_MACHINE` nodes, without the deleted ones, have the UUID in their inventories. */
async function isOfMany(tx: Tx, uuid: string): Promise<boolean> {
  const { rows } = await tx.execute<{ many: boolean }>(sql`
    select count(*) > ${MOST_NODES_OF_A_MACHINE} as many from ${nodeInventories} i join ${nodes} n on n.id = i.node_id
    where i.search_terms ? ${uuid} and lower(trim(i.inventory #>> '{system,uuid}')) = ${uuid} and n.status <> 'deleted'`);
  return rows[0]?.many !== false;
}

/**
 * Returns the lowest uid that an account on the node's machine may get, or null if the agent of the present system knows all uids itself. Unlike
 * `reserveUid`, `lowestUid` uses up no uid, so it is for an account that exists already.
 */
export async function lowestUid(tx: Tx, nodeId: NodeId): Promise<number | null> {
  const { names, system } = await machineOf(tx, nodeId);
  const known = await tx
    .select()
    .from(tenantUids)
    .where(inArray(tenantUids.machine, [...names]));
  if (known.every((row) => row.madeBy === system)) return null;
  return Math.max(FIRST_TENANT_UID, ...known.map(({ highestUid }) => highestUid + 1));
}

/**
 * Reserves a uid for the next tenant's account on the node's machine, above each uid of an earlier tenant. `reserveUid` returns the lowest uid that
 * the agent may take, or null if the agent of the present system made all earlier accounts and knows their uids itself.
 */
export async function reserveUid(tx: Tx, nodeId: NodeId): Promise<number | null> {
  const { names, system } = await machineOf(tx, nodeId);
  const known = await tx
    .select()
    .from(tenantUids)
    .where(inArray(tenantUids.machine, [...names]))
    .orderBy(tenantUids.machine)
    .for("update");
  const lowest = Math.max(FIRST_TENANT_UID, ...known.map(({ highestUid }) => highestUid + 1));
  const highestUid = Math.min(lowest, LAST_TENANT_UID);
  await tx
    .insert(tenantUids)
    .values(names.map((machine) => ({ machine, highestUid, madeBy: system })))
    .onConflictDoUpdate({ target: tenantUids.machine, set: { highestUid: sql`excluded.highest_uid` } });
  return known.every((row) => row.madeBy === system) ? null : lowest;
}

/** Keeps the uid that the agent gave to a tenant's account, so that no later tenant of the machine gets the uid. */
export async function keepUid(tx: Tx, nodeId: NodeId, uid: number): Promise<void> {
  if (uid < FIRST_TENANT_UID || uid > LAST_TENANT_UID) return;
  const { names, system } = await machineOf(tx, nodeId);
  const highest = sql`greatest(${tenantUids.highestUid}, least(${uid}::int, ${tenantUids.highestUid} + ${MOST_SKIPPED}))`;
  await tx
    .update(tenantUids)
    .set({ highestUid: highest, madeBy: system })
    .where(inArray(tenantUids.machine, [...names]));
}
