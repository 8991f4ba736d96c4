import type { AllocationStatus } from "../../../shared/allocation-status.ts";
import type { AllocationId, NodeId, SiteId } from "../../../shared/ids.ts";
import { and, desc, eq, inArray, ne, type SQL, sql } from "../orm.ts";
import { type AllocationRow, allocations, nodeDecommissions, nodes, tasks, workflowSubjects } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** The values that only the creation of an allocation writes. */
export type NewAllocation = Omit<
  typeof allocations.$inferInsert,
  | "status"
  | "createdAt"
  | "activeAt"
  | "endedAt"
  | "endReason"
  | "endForced"
  | "errorCode"
  | "errorMessage"
  | "decommissionId"
>;

/** Stores a new allocation, which is `granting`. `insertAllocation` is null if the node has an open allocation. */
export async function insertAllocation(tx: Tx, allocation: NewAllocation): Promise<AllocationRow | null> {
  const [row] = await tx
    .insert(allocations)
    .values({ ...allocation, status: "granting" })
    .onConflictDoNothing({ target: allocations.nodeId, where: ne(allocations.status, sql`'ended'`) })
    .returning();
  return row ?? null;
}

export async function readAllocation(db: Db | Tx, id: AllocationId): Promise<AllocationRow | null> {
  const [row] = await db.select().from(allocations).where(eq(allocations.id, id));
  return row ?? null;
}

/** Locks the allocation until the transaction ends. A caller that also locks the node locks the node first. */
export async function lockAllocation(tx: Tx, id: AllocationId): Promise<AllocationRow | null> {
  const [row] = await tx.select().from(allocations).where(eq(allocations.id, id)).for("update");
  return row ?? null;
}

/** Locks the node's open allocation until the transaction ends. The result is null if the node has no open allocation. */
export async function lockOpenAllocation(tx: Tx, nodeId: NodeId): Promise<AllocationRow | null> {
  const [row] = await tx
    .select()
    .from(allocations)
    .where(and(eq(allocations.nodeId, nodeId), ne(allocations.status, "ended")))
    .for("update");
  return row ?? null;
}

/** A node's open allocation, as the views of nodes need it. */
export type OpenAllocation = Pick<AllocationRow, "id" | "nodeId" | "tenant" | "status">;

export async function openAllocationsOf(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, OpenAllocation>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db
    .select({
      id: allocations.id,
      nodeId: allocations.nodeId,
      tenant: allocations.tenant,
      status: allocations.status,
    })
    .from(allocations)
    .where(and(inArray(allocations.nodeId, [...nodeIds]), ne(allocations.status, "ended")));
  return new Map(rows.map((row) => [row.nodeId, row]));
}

/** The columns that a move of an allocation may write beside its status. */
export type AllocationChange = Partial<
  Pick<
    typeof allocations.$inferInsert,
    "errorCode" | "errorMessage" | "grantTaskId" | "decommissionId" | "endReason" | "endForced"
  >
>;

/**
 * Writes the allocation's status if the present status is still `from`, and returns null otherwise. `moveAllocation` calls `setAllocationStatus` and
 * records the change.
 */
export async function setAllocationStatus(
  tx: Tx,
  id: AllocationId,
  move: { readonly from: AllocationStatus; readonly to: AllocationStatus },
  change: AllocationChange,
): Promise<AllocationRow | null> {
  const [row] = await tx
    .update(allocations)
    .set({
      ...change,
      status: move.to,
      ...(move.to === "active" ? { activeAt: sql`now()` } : {}),
      ...(move.to === "ended" ? { endedAt: sql`now()` } : {}),
    })
    .where(and(eq(allocations.id, id), eq(allocations.status, move.from)))
    .returning();
  return row ?? null;
}

/** Records the operation that cleans the node after the allocation's tenant. */
export async function setTurnover(
  tx: Tx,
  id: AllocationId,
  change: Pick<AllocationRow, "decommissionId" | "endForced">,
): Promise<void> {
  await tx.update(allocations).set(change).where(eq(allocations.id, id));
}

export interface AllocationFilter {
  readonly nodeId?: NodeId | undefined;
  readonly siteId?: SiteId | undefined;
  readonly hostname?: string | undefined;
  readonly tenant?: string | undefined;
  readonly loginUser?: string | undefined;
  readonly status?: AllocationStatus | undefined;
}

/** Lists allocations, newest first. The argument `before` is the last entry of the previous page. */
export async function listAllocations(
  db: Db,
  filter: AllocationFilter,
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<{ allocation: AllocationRow; at: string }[]> {
  const conditions: (SQL | undefined)[] = [
    filter.nodeId === undefined ? undefined : eq(allocations.nodeId, filter.nodeId),
    filter.siteId === undefined ? undefined : eq(allocations.siteId, filter.siteId),
    filter.hostname === undefined ? undefined : eq(allocations.hostname, filter.hostname),
    filter.tenant === undefined ? undefined : eq(allocations.tenant, filter.tenant),
    filter.loginUser === undefined ? undefined : eq(allocations.loginUser, filter.loginUser),
    filter.status === undefined ? undefined : eq(allocations.status, filter.status),
    page.before === null
      ? undefined
      : sql`(${allocations.createdAt}, ${allocations.id}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  return db
    .select({ allocation: allocations, at: sql<string>`${allocations.createdAt}::text` })
    .from(allocations)
    .where(and(...conditions))
    .orderBy(desc(allocations.createdAt), desc(allocations.id))
    .limit(page.limit);
}

/**
 * Locks `granting` allocations whose task is over or missing. An allocation is left out if another transaction has locked it, because another hub
 * sweeps too.
 */
export async function lockSettledGrants(tx: Tx, limit: number): Promise<AllocationRow[]> {
  return tx
    .select()
    .from(allocations)
    .where(
      and(
        eq(allocations.status, "granting"),
        sql`not exists (select 1 from ${tasks} t where t.id = ${allocations.grantTaskId}
          and t.state in ('queued', 'offered', 'running', 'cancelling'))`,
      ),
    )
    .orderBy(allocations.createdAt, allocations.id)
    .limit(limit)
    .for("update", { skipLocked: true });
}

/**
 * The ids of allocations that the sweep can end now: those whose planned end has passed, and those that are `ending` and wait for their turnover. An
 * allocation is left out while an operation holds its node, or while its node is not in service.
 */
export async function findDueEnds(db: Db, limit: number): Promise<AllocationId[]> {
  const { rows } = await db.execute<{ id: AllocationId }>(sql`
    select a.id from ${allocations} a join ${nodes} n on n.id = a.node_id
    where ((a.status in ('granting', 'active', 'failed') and a.ends_at <= now())
        or (a.status = 'ending' and a.decommission_id is null))
      and n.status in ('active', 'offline', 'quarantined')
      and not exists (select 1 from ${workflowSubjects} s where s.subject = 'node:' || a.node_id)
    order by coalesce(a.ends_at, a.created_at), a.id limit ${limit}`);
  return rows.map(({ id }) => id);
}

/**
 * The ids of open allocations whose account cannot exist any more: the node was deleted, or MAAS has released the system on which the account was
 * made. An allocation is left out while the operation that clears its node is not over, because that operation ends the allocation itself.
 */
export async function findHostsGone(db: Db, limit: number): Promise<AllocationId[]> {
  const { rows } = await db.execute<{ id: AllocationId }>(sql`
    select a.id from ${allocations} a
    where a.status <> 'ended' and (
      not exists (select 1 from ${nodes} n where n.id = a.node_id and n.status <> 'deleted')
      or exists (select 1 from ${nodeDecommissions} d where d.node_id = a.node_id and d.released_generation >= a.generation))
      and not exists (select 1 from ${workflowSubjects} s where s.workflow_id = a.decommission_id)
    order by a.id limit ${limit}`);
  return rows.map(({ id }) => id);
}
