import type { AllocationId, NodeId } from "../../../shared/ids.ts";
import { TERMINAL_WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { and, eq, gte, inArray, isNotNull, notInArray, type SQL, sql } from "../orm.ts";
import {
  type AllocationRow,
  allocations,
  type Node,
  nodeDecommissions,
  type Workflow,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { hasLiveCertificate } from "./node-certificates.ts";

/**
 * SQL that is true for an allocation whose account is gone, because a reinstall has released the system with the account. The order of the account on the
 * new system ties the allocation to the new generation, and only the agent's success gives it the evidence of an account again. `table` is the name by
 * which the statement knows the allocation, because a column without the name of its table would mean the table of the inner statement.
 */
export const isLostToReinstall = (table: "a" | "allocations"): SQL<boolean> => {
  const allocation = sql.identifier(table);
  return sql<boolean>`exists (select 1 from node_decommissions l
    where l.node_id = ${allocation}.node_id and l.created_at >= ${allocation}.created_at and l.reinstalled_generation is not null
    and (l.reinstalled_generation >= ${allocation}.generation or ${allocation}.grant_task_id is null))`;
};

/** SQL that is true for an allocation `a` that has no part in the system that the host has now, or in none, since a reinstall released its own. */
export const hasNoPartInSystem = sql`exists (
  select 1 from node_decommissions l where l.node_id = a.node_id and l.reinstalled_generation >= a.generation)`;

export async function isAccountLost(db: Db | Tx, id: AllocationId): Promise<boolean> {
  const { rows } = await db.execute<{ lost: boolean }>(
    sql`select ${isLostToReinstall("a")} as lost from ${allocations} a where a.id = ${id}`,
  );
  return rows[0]?.lost === true;
}

/** True if a reinstall has released the machine since the allocation was made, so that its disks may hold data that no baseline knows. */
export async function wasReinstalled(
  tx: Tx,
  { nodeId, createdAt }: Pick<AllocationRow, "nodeId" | "createdAt">,
): Promise<boolean> {
  const rows = await tx
    .select({ id: nodeDecommissions.decommissionId })
    .from(nodeDecommissions)
    .where(
      and(
        eq(nodeDecommissions.nodeId, nodeId),
        isNotNull(nodeDecommissions.reinstalledGeneration),
        gte(nodeDecommissions.createdAt, createdAt),
      ),
    )
    .limit(1);
  return rows.length > 0;
}

/**
 * True if a reinstall has taken the node's system away and left no system whose agent could do anything: the present generation was released, never
 * enrolled, or lost its certificate when the reinstall was cancelled.
 */
export async function hasNoSystemSinceReinstall(
  tx: Tx,
  { id, generation }: Pick<Node, "id" | "generation">,
): Promise<boolean> {
  const rows = await tx
    .select({ id: nodeDecommissions.decommissionId })
    .from(nodeDecommissions)
    .where(and(eq(nodeDecommissions.nodeId, id), isNotNull(nodeDecommissions.reinstalledGeneration)))
    .limit(1);
  return rows.length > 0 && !(await hasLiveCertificate(tx, id, generation));
}

/** A reinstall that is not over, as the tenant of the instance needs to know it. */
export type OpenReinstall = Pick<Workflow, "id" | "status" | "failureMessage">;

/** Returns the reinstalls of the nodes that are not over, which hold their nodes. */
export async function openReinstallsOf(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, OpenReinstall>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db
    .select({
      nodeId: nodeDecommissions.nodeId,
      id: workflows.id,
      status: workflows.status,
      failureMessage: workflows.failureMessage,
    })
    .from(nodeDecommissions)
    .innerJoin(workflows, eq(workflows.id, nodeDecommissions.decommissionId))
    .where(
      and(
        inArray(nodeDecommissions.nodeId, [...nodeIds]),
        eq(nodeDecommissions.mode, "reinstall"),
        notInArray(workflows.status, [...TERMINAL_WORKFLOW_STATUSES]),
      ),
    );
  return new Map(rows.map(({ nodeId, ...row }) => [nodeId, row]));
}
