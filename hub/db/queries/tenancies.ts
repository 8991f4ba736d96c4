import type { AllocationId, NodeId, WorkflowId } from "../../../shared/ids.ts";
import { TASKS, type TaskType } from "../../../shared/tasks/index.ts";
import { and, desc, eq, gte, inArray, or, type SQL, sql } from "../orm.ts";
import {
  type AllocationRow,
  allocations,
  type NodeDecommission,
  nodeDecommissions,
  tasks,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface Tenancy {
  readonly allocationId: AllocationId;
  readonly tenant: string;
  readonly loginUser: string;
  /** True if the tenant could get the rights of root by a grant of the allocation, or by a way that the agent found (decision C4). */
  readonly hadRoot: boolean;
  readonly grantsRoot: boolean;
  /** The ways by which the tenant's account could become root, as the agent found them, for example `group docker`. */
  readonly rootBy: readonly string[];
  /** The time from which the allocation's tenant could log in; null if the tenant's account was never ready. */
  readonly activeAt: Date | null;
  /** The uid of the tenant's account on the host; null if no result of the agent says that the agent made the account. */
  readonly uid: number | null;
}

export const hadRootBy = ({ grantsRoot, rootBy }: Pick<AllocationRow, "grantsRoot" | "rootBy">): boolean =>
  grantsRoot || rootBy.length > 0;

/**
 * SQL for the allocation of the node after which the given operation cleans the host. With the node's id in the query, PostgreSQL can use the index
 * of allocations by node.
 */
const turnedOverBy = (nodeId: NodeId, operation: WorkflowId) =>
  and(eq(allocations.nodeId, nodeId), eq(allocations.decommissionId, operation));

export const readTenancy = (db: Db, nodeId: NodeId, operation: WorkflowId): Promise<Tenancy | null> =>
  tenancyWhere(db, turnedOverBy(nodeId, operation));

export const readTenancyOf = (tx: Tx, id: AllocationId): Promise<Tenancy | null> =>
  tenancyWhere(tx, eq(allocations.id, id));

async function tenancyWhere(db: Db | Tx, where: SQL | undefined): Promise<Tenancy | null> {
  const [row] = await db
    .select({ allocation: allocations, result: tasks.result })
    .from(allocations)
    .leftJoin(tasks, eq(tasks.id, allocations.grantTaskId))
    .where(where);
  if (row === undefined) return null;
  const { id, tenant, loginUser, grantsRoot, rootBy, activeAt } = row.allocation;
  const hadRoot = hadRootBy(row.allocation);
  const granted = TASKS["allocation.grant_user"].result.safeParse(row.result);
  const uid = granted.success ? granted.data.uid : null;
  return { allocationId: id, tenant, loginUser, hadRoot, grantsRoot, rootBy, activeAt, uid };
}

export async function lockAllocationOfOperation(
  tx: Tx,
  nodeId: NodeId,
  operation: WorkflowId,
): Promise<AllocationRow | null> {
  const [row] = await tx.select().from(allocations).where(turnedOverBy(nodeId, operation)).for("update");
  return row ?? null;
}

/** The facts about a decommission that a sanitization record contains. */
export type NamedOperation = Pick<
  NodeDecommission,
  "decommissionId" | "mode" | "reason" | "createdAt" | "releasedGeneration"
> & { readonly requestedBy: string | null };
const named = {
  decommissionId: nodeDecommissions.decommissionId,
  mode: nodeDecommissions.mode,
  reason: nodeDecommissions.reason,
  createdAt: nodeDecommissions.createdAt,
  releasedGeneration: nodeDecommissions.releasedGeneration,
  requestedBy: workflows.requestedBy,
};
type Held = Pick<AllocationRow, "id" | "nodeId" | "generation" | "createdAt">;

const released = ({ generation }: Held): SQL =>
  sql`coalesce(${nodeDecommissions.releasedGeneration} >= ${generation}, false)`;

/**
 * Returns the operation with which the host of an allocation left Muster's control: the one that released the machine, or else the newest removal. If
 * no operation released the machine and none removed the node, `readTakingOperation` returns the node's newest operation, and null if the node has
 * none.
 */
export async function readTakingOperation(tx: Tx, held: Held): Promise<NamedOperation | null> {
  const removes = sql`${nodeDecommissions.mode} in ('remove', 'full_decommission')`;
  const [row] = await tx
    .select(named)
    .from(nodeDecommissions)
    .innerJoin(workflows, eq(workflows.id, nodeDecommissions.decommissionId))
    .where(eq(nodeDecommissions.nodeId, held.nodeId))
    .orderBy(sql`${released(held)} desc`, sql`${removes} desc`, desc(nodeDecommissions.createdAt))
    .limit(1);
  return row ?? null;
}

/**
 * Returns the newest operation (a soft reset, a reimage or a full decommission) that began to clean the host after the allocation began, or null. An
 * operation has begun to clean if an agent got one of the tasks `types`, or if it is a reimage whose machine MAAS has released.
 */
export async function readBegunCleaning(
  tx: Tx,
  held: Held,
  types: readonly TaskType[],
): Promise<Pick<NamedOperation, "decommissionId" | "mode"> | null> {
  const [row] = await tx
    .select({ decommissionId: nodeDecommissions.decommissionId, mode: nodeDecommissions.mode })
    .from(nodeDecommissions)
    .where(
      and(
        eq(nodeDecommissions.nodeId, held.nodeId),
        inArray(nodeDecommissions.mode, ["soft_reset", "reimage", "full_decommission"]),
        gte(nodeDecommissions.createdAt, held.createdAt),
        or(
          and(eq(nodeDecommissions.mode, "reimage"), released(held)),
          sql`exists (select 1 from ${tasks} t where t.node_id = ${held.nodeId} and t.workflow_id = ${nodeDecommissions.decommissionId}
            and t.epoch > 0 and t.type = any(${sql.param([...types])}::text[]))`,
        ),
      ),
    )
    .orderBy(desc(nodeDecommissions.createdAt))
    .limit(1);
  return row ?? null;
}
