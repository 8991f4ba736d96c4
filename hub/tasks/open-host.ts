import { randomUUID } from "node:crypto";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { hasWaitingUndrain } from "../db/queries/closed-hosts.ts";
import { cancelTasksOf, enqueueTask } from "../db/queries/tasks.ts";
import type { Tx } from "../db/tx.ts";

/** How long a task waits that only brings the host to what its node is already; an agent that is away for longer finds the host as it was left. */
export const AGENT_MAY_RETURN_SECONDS = 7 * 86_400;

/**
 * Has the host let people in again: what is open of a drain ends, and an undrain is queued unless one is under way. Harmless where nothing was
 * closed. Callers hold the node or its operation, so that no drain is queued in between.
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
