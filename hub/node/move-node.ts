import type { NodeId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { noteChange } from "../db/committed.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { judgeMachineAgain } from "../db/queries/node-machines.ts";
import { readNode, setNodeStatus } from "../db/queries/nodes.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import type { NodeTransition } from "./transitions.ts";

export type TransitionResult =
  | { readonly moved: true; readonly node: Node }
  | { readonly moved: false; readonly actual: NodeStatus | null };

/**
 * Changes a node's status; no other function writes `nodes.status`. If another transaction has changed the node's status since the caller read it,
 * `moveNode` writes nothing. If `moveNode` writes nothing, it returns the node's present status, or null for a missing node.
 */
export async function moveNode(
  tx: Tx,
  nodeId: NodeId,
  move: NodeTransition,
  message: string,
): Promise<TransitionResult> {
  const operationId = "operationId" in move ? move.operationId : null;
  const node = await setNodeStatus(tx, nodeId, { from: move.from, to: move.to, operationId, owner: move.owner });
  if (node === null) return { moved: false, actual: (await readNode(tx, nodeId))?.status ?? null };
  const [fromStatus, toStatus] = [move.from, move.to];
  await recordNodeEvent(tx, { nodeId, type: "status_changed", fromStatus, toStatus, owner: move.owner, message });
  await recordDomainEvent(tx, {
    type: "node.status.changed",
    subject: `nodes/${nodeId}`,
    data: { node_id: nodeId, hostname: node.hostname, from: move.from, to: move.to, owner: move.owner },
  });
  const { hostname, siteId } = node;
  const { from, to, owner } = move;
  noteChange(tx, { what: "node_moved", nodeId, hostname, siteId, from, to, owner, reason: message });
  await wakeWorkflows(tx, [waitKey.node(nodeId)]);
  await judgeMachineAgain(tx, nodeId);
  return { moved: true, node };
}
