import type { NodeId } from "../../../shared/ids.ts";
import { and, asc, eq, inArray, isNull, sql } from "../orm.ts";
import { allocations, type Node, nodes, workflowSubjects } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** SQL that is true for a node that no allocation and no workflow holds. */
const isUnheld = and(
  eq(nodes.status, "active"),
  isNull(nodes.cordonReason),
  sql`not exists (select 1 from ${allocations} a where a.node_id = ${nodes.id} and a.status <> 'ended')`,
  sql`not exists (select 1 from ${workflowSubjects} s where s.subject = 'node:' || ${nodes.id})`,
);

/**
 * Locks, in the order of their ids, those of `nodeIds` that no allocation and no workflow holds; with `skipLocked`, leaves out nodes that another
 * transaction has locked. After `lockFreeNodes`, its caller checks the nodes' conditions and all other reasons that forbid an allocation.
 */
export async function lockFreeNodes(tx: Tx, nodeIds: readonly NodeId[], skipLocked: boolean): Promise<NodeId[]> {
  const locked = await tx
    .select({ id: nodes.id })
    .from(nodes)
    .where(and(inArray(nodes.id, [...nodeIds]), isUnheld))
    .orderBy(asc(nodes.id))
    .for("no key update", skipLocked ? { skipLocked } : {});
  return locked.map(({ id }) => id);
}

/**
 * Locks one of `nodeIds` that is free, which means that no allocation, workflow or other transaction holds the node. After `lockAnyFreeNode`, its
 * caller checks the node's conditions and all other reasons that forbid an allocation.
 */
export async function lockAnyFreeNode(tx: Tx, nodeIds: readonly NodeId[]): Promise<Node | null> {
  const [node] = await tx
    .select()
    .from(nodes)
    .where(and(inArray(nodes.id, [...nodeIds]), isUnheld))
    .orderBy(asc(nodes.hostname), asc(nodes.id))
    .limit(1)
    .for("no key update", { skipLocked: true });
  return node ?? null;
}
