import type { NodeId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { and, eq, sql } from "../db/orm.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import { type Node, nodeMaasState, nodes } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import type { NodeMove } from "./transitions.ts";

export type MoveResult =
  | { readonly moved: true; readonly node: Node }
  | { readonly moved: false; readonly actual: NodeStatus | null };

/**
 * The only code that writes `nodes.status`. It is a compare-and-swap: if another writer moved the node first, nothing is written and the node's
 * present status is returned (null if there is no node).
 */
export async function moveNode(tx: Tx, nodeId: NodeId, move: NodeMove, message: string): Promise<MoveResult> {
  const operationId = "operationId" in move ? move.operationId : null;
  const [node] = await tx
    .update(nodes)
    .set({ status: move.to, operationId, updatedAt: sql`now()` })
    .where(and(eq(nodes.id, nodeId), eq(nodes.status, move.from)))
    .returning();
  if (node === undefined) {
    const [other] = await tx.select({ status: nodes.status }).from(nodes).where(eq(nodes.id, nodeId));
    return { moved: false, actual: other?.status ?? null };
  }
  const [fromStatus, toStatus] = [move.from, move.to];
  await recordNodeEvent(tx, { nodeId, type: "status_changed", fromStatus, toStatus, owner: move.owner, message });
  await recordDomainEvent(tx, {
    type: "node.status.changed",
    subject: `nodes/${nodeId}`,
    data: { node_id: nodeId, hostname: node.hostname, from: move.from, to: move.to, owner: move.owner },
  });
  await wakeWorkflows(tx, [waitKey.node(nodeId)]);
  // The reconciler must judge the node's machine again, because the same machine has another meaning in the new status.
  await tx
    .update(nodeMaasState)
    .set({ reconcileDueAt: sql`clock_timestamp()` })
    .where(eq(nodeMaasState.nodeId, nodeId));
  return { moved: true, node };
}
