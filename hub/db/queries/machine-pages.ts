import type { AllocationId, NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { and, asc, count, desc, eq, inArray, ne, type SQL, sql } from "../orm.ts";
import {
  allocations,
  type MaasMachineRow,
  maasMachines,
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

/** The newest recorded changes of a node that its status history in NICo's form is made from. */
const EVENTS_OF_A_NODE = 200;
const USES_OF_A_NODE = 50;

export interface MachinePage {
  readonly limit: number;
  readonly offset: number;
}

/** Returns the ids of a page of nodes that are not deleted, oldest first, and the number of such nodes. The order never changes for a node. */
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
  readonly verdict: string | null;
}

/** What the hub has recorded of nodes, for the view of NICo's clients. */
export interface MachineRecords {
  readonly inventories: ReadonlyMap<NodeId, { readonly inventory: unknown; readonly reportedAt: Date }>;
  readonly machines: ReadonlyMap<NodeId, MaasMachineRow>;
  readonly changes: readonly NodeChange[];
  readonly uses: readonly UseOfNode[];
  readonly cleanings: readonly CleaningOfNode[];
}

export async function readMachineRecords(db: Db, ids: readonly NodeId[]): Promise<MachineRecords> {
  if (ids.length === 0) return { inventories: new Map(), machines: new Map(), changes: [], uses: [], cleanings: [] };
  const inventories = await db
    .select()
    .from(nodeInventories)
    .where(inArray(nodeInventories.nodeId, [...ids]));
  const machines = await db
    .select({ nodeId: nodeMaasState.nodeId, machine: maasMachines })
    .from(nodeMaasState)
    .innerJoin(
      maasMachines,
      and(eq(maasMachines.siteId, nodeMaasState.siteId), eq(maasMachines.systemId, nodeMaasState.maasSystemId)),
    )
    .where(inArray(nodeMaasState.nodeId, [...ids]));
  return {
    inventories: new Map(inventories.map((row) => [row.nodeId, row])),
    machines: new Map(machines.map(({ nodeId, machine }) => [nodeId, machine])),
    changes: await changesOf(db, ids),
    uses: await usesOf(db, ids),
    cleanings: await cleaningsOf(db, ids),
  };
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
  const rows = await db
    .select({
      nodeId: allocations.nodeId,
      id: allocations.id,
      tenant: allocations.tenant,
      beganAt: allocations.createdAt,
      endingAt: nodeDecommissions.createdAt,
      endedAt: allocations.endedAt,
      newest: place(sql`${allocations.nodeId}`, sql`${allocations.createdAt} desc`),
    })
    .from(allocations)
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, allocations.decommissionId))
    .where(inArray(allocations.nodeId, [...ids]))
    .orderBy(desc(allocations.createdAt));
  return rows.filter(({ newest }) => Number(newest) <= USES_OF_A_NODE);
}

/** A cleaning is a turnover: the operations that clean a node after a tenant, and that end with a sanitization record. */
async function cleaningsOf(db: Db, ids: readonly NodeId[]): Promise<CleaningOfNode[]> {
  return db
    .select({
      nodeId: nodeDecommissions.nodeId,
      operation: nodeDecommissions.decommissionId,
      beganAt: nodeDecommissions.createdAt,
      endedAt: sql<Date | null>`case when ${workflows.status} in ('pending', 'running', 'compensating') then null
        else coalesce(${workflows.completedAt}, ${workflows.updatedAt}) end`.mapWith(workflows.completedAt),
      recordId: sanitizationRecords.recordId,
      verdict: sanitizationRecords.verdict,
    })
    .from(nodeDecommissions)
    .innerJoin(workflows, eq(workflows.id, nodeDecommissions.decommissionId))
    .leftJoin(sanitizationRecords, eq(sanitizationRecords.decommissionId, nodeDecommissions.decommissionId))
    .where(and(inArray(nodeDecommissions.nodeId, [...ids]), inArray(nodeDecommissions.mode, ["soft_reset", "reimage"])))
    .orderBy(desc(nodeDecommissions.createdAt))
    .limit(USES_OF_A_NODE * ids.length);
}

export interface InstanceFilter {
  readonly reach: Reach;
  readonly siteId?: SiteId | undefined;
  readonly id?: AllocationId | undefined;
}

/** Returns a page of the allocations that have not ended, oldest first, and their number. */
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

/** Returns a page of the tenants that have open allocations, each with the site, and their number. */
export async function pageOfTenants(
  db: Db,
  { reach, siteId }: Pick<InstanceFilter, "reach" | "siteId">,
  { limit, offset }: MachinePage,
): Promise<{ rows: { siteId: SiteId | null; tenant: string }[]; total: number }> {
  const pairs = db
    .selectDistinct({ siteId: allocations.siteId, tenant: allocations.tenant })
    .from(allocations)
    .where(
      and(
        ne(allocations.status, "ended"),
        isWithin(reach, { site: allocations.siteId, tenant: allocations.tenant }),
        siteId === undefined ? undefined : eq(allocations.siteId, siteId),
      ),
    )
    .as("pairs");
  const rows = await db.select().from(pairs).orderBy(asc(pairs.siteId), asc(pairs.tenant)).limit(limit).offset(offset);
  const [counted] = await db.select({ total: count() }).from(pairs);
  return { rows, total: counted?.total ?? 0 };
}
