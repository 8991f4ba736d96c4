import { randomUUID } from "node:crypto";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { hasWaitingUndrain } from "../db/queries/closed-hosts.ts";
import { cancelTasksOf, enqueueTask } from "../db/queries/tasks.ts";
import type { Tx } from "../db/tx.ts";

/**
 * The deadline of a task that only brings a host to the state of its node, for example an undrain. If the agent is away for longer than this
 * deadline, the host keeps its state.
 */
export const AGENT_MAY_RETURN_SECONDS = 7 * 86_400;

/**
 * Lets users onto the host again: cancels its open drain tasks, and queues an undrain unless one is open. A host that already lets users on is left
 * as it is. The caller of `openHost` holds the node or its operation, so no drain can be queued in between.
 */
export async function openHost(
  tx: Tx,
  { nodeId, workflowId, reason }: { nodeId: NodeId; workflowId?: WorkflowId; reason: string },
): Promise<void> {
  await cancelTasksOf(tx, nodeId, "node.drain");
  if (await hasWaitingUndrain(tx, nodeId)) return;
  await enqueueTask(tx, {
    nodeId,
    ...(workflowId === undefined ? {} : { workflowId }),
    type: "node.undrain",
    input: { reason },
    idempotencyKey: `node.undrain/${randomUUID()}`,
    deadlineSeconds: AGENT_MAY_RETURN_SECONDS,
  });
}
