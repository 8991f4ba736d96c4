import type { AllocationId, NodeId, WorkflowId } from "../../../shared/ids.ts";
import { TASKS } from "../../../shared/tasks/index.ts";
import { and, eq } from "../orm.ts";
import { type AllocationRow, allocations, tasks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface Tenancy {
  readonly allocationId: AllocationId;
  readonly tenant: string;
  readonly loginUser: string;
  /** True if the tenant could get the rights of root by a grant of the allocation, or by a way that the agent found (decision C4). */
  readonly hadRoot: boolean;
  readonly grantsRoot: boolean;
  /** The ways to the rights of root that the agent found, for example `group docker`. */
  readonly rootBy: readonly string[];
  /** The time from which the tenant could log in; null if the tenant's account was never ready. */
  readonly activeAt: Date | null;
  /** The uid of the tenant's account on the host; null if no result of the agent says that the agent made the account. */
  readonly uid: number | null;
}

export const hadRootBy = ({ grantsRoot, rootBy }: Pick<AllocationRow, "grantsRoot" | "rootBy">): boolean =>
  grantsRoot || rootBy.length > 0;

/**
 * SQL for the allocation of the node whose turnover is the given operation. With the node's id in the query, PostgreSQL can use the index of
 * allocations by node.
 */
const turnedOverBy = (nodeId: NodeId, operation: WorkflowId) =>
  and(eq(allocations.nodeId, nodeId), eq(allocations.decommissionId, operation));

export async function readTenancy(db: Db, nodeId: NodeId, operation: WorkflowId): Promise<Tenancy | null> {
  const [row] = await db
    .select({ allocation: allocations, result: tasks.result })
    .from(allocations)
    .leftJoin(tasks, eq(tasks.id, allocations.grantTaskId))
    .where(turnedOverBy(nodeId, operation));
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
