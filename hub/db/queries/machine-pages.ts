import type { AllocationId, NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import type { RecordVerdict } from "../../../shared/sanitization-record.ts";
import { and, asc, count, eq, inArray, ne, type SQL, sql } from "../orm.ts";
import {
  allocations,
  type MaasMachineRow,
  maasMachines,
  maasSites,
  nodeDecommissions,
  nodeEvents,
  nodeInventories,
  nodeMaasState,
  nodes,
  sanitizationRecords,
  workflows,
} from "../schema/index.ts";
import type { Db } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";

/** The newest recorded changes of a node that its status history is made from. */
const EVENTS_OF_A_NODE = 200;
const USES_OF_A_NODE = 50;

export interface MachinePage {
  readonly limit: number;
  readonly offset: number;
}

/**
 * Returns the ids of a page of nodes that are not deleted, oldest first, and the number of such nodes. The page is part of a list in the order in
 * which the hub created the nodes, so two nodes in the list never change places.
 */
export async function pageOfMachines(
  db: Db,
  { reach, siteId }: { readonly reach: Reach; readonly siteId: SiteId | undefined },
  { limit, offset }: MachinePage,
): Promise<{ ids: NodeId[]; total: number }> {
  const where = and(
    ne(nodes.status, "deleted"),
    isWithin(reach, { site: nodes.siteId }),
    siteId === undefined ? undefined : eq(nodes.siteId, siteId),
  );
  const rows = await db
    .select({ id: nodes.id })
    .from(nodes)
    .where(where)
    .orderBy(asc(nodes.createdAt), asc(nodes.id))
    .limit(limit)
    .offset(offset);
  const [counted] = await db.select({ total: count() }).from(nodes).where(where);
  return { ids: rows.map(({ id }) => id), total: counted?.total ?? 0 };
}

export interface NodeChange {
  readonly nodeId: NodeId;
  readonly type: string;
  readonly fromStatus: NodeStatus | null;
  readonly toStatus: NodeStatus | null;
  readonly owner: string;
  readonly message: string;
  readonly occurredAt: Date;
}

export interface UseOfNode {
  readonly nodeId: NodeId;
  readonly id: AllocationId;
  readonly tenant: string;
  readonly beganAt: Date;
  readonly endingAt: Date | null;
  readonly endedAt: Date | null;
}

export interface CleaningOfNode {
  readonly nodeId: NodeId;
  readonly operation: WorkflowId;
  readonly beganAt: Date;
  readonly endedAt: Date | null;
  readonly recordId: string | null;
  readonly verdict: RecordVerdict | null;
}

/** The part of the nodes' recorded history from which the NICo-compatible API derives each machine's status. */
export interface NodeHistories {
  readonly changes: readonly NodeChange[];
  readonly uses: readonly UseOfNode[];
  readonly cleanings: readonly CleaningOfNode[];
}

/** What the hub has recorded about nodes, for the answers of the API in the form of NVIDIA NICo. */
export interface MachineRecords extends NodeHistories {
  readonly inventories: ReadonlyMap<NodeId, { readonly inventory: unknown }>;
  readonly machines: ReadonlyMap<NodeId, MaasMachineRow>;
}

export async function readMachineRecords(db: Db, ids: readonly NodeId[]): Promise<MachineRecords> {
  const inventories = await db
    .select()
    .from(nodeInventories)
    .where(inArray(nodeInventories.nodeId, [...ids]));
  return {
    inventories: new Map(inventories.map((row) => [row.nodeId, row])),
    machines: await machinesOf(db, ids),
    ...(await readHistories(db, ids)),
  };
}

export async function readHistories(db: Db, ids: readonly NodeId[]): Promise<NodeHistories> {
  return { changes: await changesOf(db, ids), uses: await usesOf(db, ids), cleanings: await cleaningsOf(db, ids) };
}

/** Returns the machines in MAAS to which the given nodes are bound. */
export async function machinesOf(db: Db, ids: readonly NodeId[]): Promise<ReadonlyMap<NodeId, MaasMachineRow>> {
  const rows = await db
    .select({ nodeId: nodeMaasState.nodeId, machine: maasMachines })
    .from(nodeMaasState)
    .innerJoin(
      maasMachines,
      and(eq(maasMachines.siteId, nodeMaasState.siteId), eq(maasMachines.systemId, nodeMaasState.maasSystemId)),
    )
    .where(inArray(nodeMaasState.nodeId, [...ids]));
  return new Map(rows.map(({ nodeId, machine }) => [nodeId, machine]));
}

/** Numbers the rows of each node from the newest, so that one statement reads the newest rows of many nodes. */
const place = (of: SQL, order: SQL): SQL<number> =>
  sql<number>`row_number() over (partition by ${of} order by ${order})`;

async function changesOf(db: Db, ids: readonly NodeId[]): Promise<NodeChange[]> {
  const numbered = db
    .select({
      id: nodeEvents.id,
      newest: place(sql`${nodeEvents.nodeId}`, sql`${nodeEvents.id} desc`).as("newest"),
    })
    .from(nodeEvents)
    .where(
      and(
        inArray(nodeEvents.nodeId, [...ids]),
        inArray(nodeEvents.type, ["created", "status_changed", "cordoned", "uncordoned"]),
      ),
    )
    .as("numbered");
  return db
    .select({
      nodeId: nodeEvents.nodeId,
      type: nodeEvents.type,
      fromStatus: nodeEvents.fromStatus,
      toStatus: nodeEvents.toStatus,
      owner: nodeEvents.owner,
      message: nodeEvents.message,
      occurredAt: nodeEvents.occurredAt,
    })
    .from(nodeEvents)
    .innerJoin(numbered, eq(numbered.id, nodeEvents.id))
    .where(sql`${numbered.newest} <= ${EVENTS_OF_A_NODE}`)
    .orderBy(asc(nodeEvents.id));
}

async function usesOf(db: Db, ids: readonly NodeId[]): Promise<UseOfNode[]> {
  const numbered = db
    .select({
      nodeId: allocations.nodeId,
      id: allocations.id,
      tenant: allocations.tenant,
      beganAt: allocations.createdAt,
      operation: allocations.decommissionId,
      endedAt: allocations.endedAt,
      newest: place(sql`${allocations.nodeId}`, sql`${allocations.createdAt} desc`).as("newest"),
    })
    .from(allocations)
    .where(inArray(allocations.nodeId, [...ids]))
    .as("numbered");
  return db
    .select({
      nodeId: numbered.nodeId,
      id: numbered.id,
      tenant: numbered.tenant,
      beganAt: numbered.beganAt,
      endingAt: nodeDecommissions.createdAt,
      endedAt: numbered.endedAt,
    })
    .from(numbered)
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, numbered.operation))
    .where(sql`${numbered.newest} <= ${USES_OF_A_NODE}`);
}

/**
 * Reads the newest cleanings after a tenant of each node, which are its operations of the modes `soft_reset` and `reimage`, with their sanitization
 * records.
 */
async function cleaningsOf(db: Db, ids: readonly NodeId[]): Promise<CleaningOfNode[]> {
  const numbered = db
    .select({
      nodeId: nodeDecommissions.nodeId,
      operation: nodeDecommissions.decommissionId,
      beganAt: nodeDecommissions.createdAt,
      newest: place(sql`${nodeDecommissions.nodeId}`, sql`${nodeDecommissions.createdAt} desc`).as("newest"),
    })
    .from(nodeDecommissions)
    .where(and(inArray(nodeDecommissions.nodeId, [...ids]), inArray(nodeDecommissions.mode, ["soft_reset", "reimage"])))
    .as("numbered");
  return db
    .select({
      nodeId: numbered.nodeId,
      operation: numbered.operation,
      beganAt: numbered.beganAt,
      endedAt: sql<Date | null>`case when ${workflows.status} in ('pending', 'running', 'compensating') then null
        else coalesce(${workflows.completedAt}, ${workflows.updatedAt}) end`.mapWith(workflows.completedAt),
      recordId: sanitizationRecords.recordId,
      verdict: sanitizationRecords.verdict,
    })
    .from(numbered)
    .innerJoin(workflows, eq(workflows.id, numbered.operation))
    .leftJoin(sanitizationRecords, eq(sanitizationRecords.decommissionId, numbered.operation))
    .where(sql`${numbered.newest} <= ${USES_OF_A_NODE}`);
}

export interface InstanceFilter {
  readonly reach: Reach;
  readonly siteId?: SiteId | undefined;
  readonly id?: AllocationId | undefined;
}

/** Returns a page of the allocations that have not ended, oldest first, and the number of all of them. */
export async function pageOfInstances(
  db: Db,
  { reach, siteId, id }: InstanceFilter,
  { limit, offset }: MachinePage,
): Promise<{ rows: (typeof allocations.$inferSelect)[]; total: number }> {
  const where = and(
    id === undefined ? ne(allocations.status, "ended") : eq(allocations.id, id),
    isWithin(reach, { site: allocations.siteId, tenant: allocations.tenant }),
    siteId === undefined ? undefined : eq(allocations.siteId, siteId),
  );
  const rows = await db
    .select()
    .from(allocations)
    .where(where)
    .orderBy(asc(allocations.createdAt), asc(allocations.id))
    .limit(limit)
    .offset(offset);
  const [counted] = await db.select({ total: count() }).from(allocations).where(where);
  return { rows, total: counted?.total ?? 0 };
}

/**
 * Returns a page of the pairs of a site and a tenant with an open allocation at the site, and the number of all pairs. Each site has one more pair in
 * the list of tenants, with the tenant name `everywhere`.
 */
export async function pageOfTenants(
  db: Db,
  { reach, siteId, everywhere }: Pick<InstanceFilter, "reach" | "siteId"> & { readonly everywhere: string },
  { limit, offset }: MachinePage,
): Promise<{ rows: { siteId: SiteId | null; tenant: string }[]; total: number }> {
  const ofInstances = and(
    ne(allocations.status, "ended"),
    isWithin(reach, { site: allocations.siteId, tenant: allocations.tenant }),
    siteId === undefined ? undefined : eq(allocations.siteId, siteId),
  );
  const ofSites = and(
    sql`true`,
    isWithin(reach, { site: maasSites.id, tenant: sql`${everywhere}::text` }),
    siteId === undefined ? undefined : eq(maasSites.id, siteId),
  );
  const pairs = sql`(
    select ${allocations.siteId} as site_id, ${allocations.tenant} as tenant from ${allocations} where ${ofInstances}
    union select ${maasSites.id}, ${everywhere}::text from ${maasSites} where ${ofSites}) pairs`;
  const { rows } = await db.execute<{ site_id: SiteId | null; tenant: string }>(
    sql`select site_id, tenant from ${pairs} order by site_id, tenant limit ${limit} offset ${offset}`,
  );
  const counted = await db.execute<{ total: number }>(sql`select count(*)::int as total from ${pairs}`);
  return { rows: rows.map(({ site_id, tenant }) => ({ siteId: site_id, tenant })), total: counted.rows[0]?.total ?? 0 };
}
