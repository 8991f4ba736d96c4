import { randomUUID } from "node:crypto";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { hasWaitingUndrain } from "../db/queries/closed-hosts.ts";
import { cancelTasksOf, enqueueTask } from "../db/queries/tasks.ts";
import type { Tx } from "../db/tx.ts";

/**
 * The deadline of a task, such as an undrain, that brings a host into the state that the hub has recorded for its node. If the agent does not connect
 * before the deadline of such a task as an undrain, the hub gives up the task, and the host stays as it is.
 */
export const AGENT_MAY_RETURN_SECONDS = 7 * 86_400;

/**
 * Lets users log in to a host again: cancels the host's open drain tasks, and queues an undrain unless an undrain is already open. On a host that
 * already lets users log in, an undrain changes nothing. The caller of `openHost` has locked the node's row or works for the operation that holds the
 * node, so no other transaction can queue a drain meanwhile.
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
