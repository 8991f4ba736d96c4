import { lockNode } from "../../../db/queries/nodes.ts";
import { cancelTasksOf } from "../../../db/queries/tasks.ts";
import type { Tx } from "../../../db/tx.ts";
import { cordonForOperation } from "../../../node/cordon.ts";
import { enterDraining, leaveDraining } from "../../../node/lifecycle.ts";
import { StageFailure } from "../../stage-failure.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  RECORD_RETRY,
  recordTimeout,
  stateConflict,
} from "../decommission-context.ts";
import { hasLostSystem, isCleanable, KEEPS_STATUS } from "../keeps-status.ts";

/** `cordon` throws if the node has left service, because the operation cannot clean such a node for the next tenant. */
async function cordon(tx: Tx, context: DecommissionContext): Promise<void> {
  const { workflowId, decommission } = context;
  const node = await lockNode(tx, context.node.id);
  const stands = node !== null && (isCleanable(node.status) || hasLostSystem(decommission.mode, node.status));
  if (!stands) throw new StageFailure(stateConflict(context, node?.status ?? null, "cleaned"));
  await cordonForOperation(tx, node.id, workflowId, decommission.reason);
}

async function drain(tx: Tx, context: DecommissionContext): Promise<void> {
  const { node, workflowId, decommission } = context;
  const step = await enterDraining(tx, node.id, workflowId, decommission.reason);
  if (step.kind === "refused") throw new StageFailure(stateConflict(context, step.actual, "drained"));
}

function told({ node, decommission }: DecommissionContext): string {
  if (KEEPS_STATUS[decommission.mode]) return "The node is cordoned";
  return node.status === "draining" || node.status === "retired"
    ? `The node is ${node.status} already`
    : "The node is cordoned and draining";
}

/**
 * A drain cordons the node and gives it the status `draining`, which the drain owns (lifecycle 5.2). A mode that only cleans the node cordons the
 * node and keeps its status (decision N1).
 */
export const disableNode: DecommissionStageOf<"disable_node"> = {
  name: "disable_node",
  title: "Cordon the node, and for a drain mark it as draining",
  reentry: { rule: "from_top" },
  timeout: recordTimeout("The cordon"),
  retry: RECORD_RETRY,
  run: async (context) => ({
    kind: "done",
    message: told(context),
    commit: async (tx) => {
      const { node, decommission } = context;
      await (KEEPS_STATUS[decommission.mode] ? cordon(tx, context) : drain(tx, context));
      // An `undrain` task of an earlier operation may still be queued, and would reopen the host during the drain.
      await cancelTasksOf(tx, node.id, "node.undrain");
    },
  }),
  compensate: async (context, cause) => ({
    kind: "done",
    message: KEEPS_STATUS[context.decommission.mode]
      ? "The end of the operation decides about the cordon"
      : "The node is no longer draining; it becomes active again when its agent reports",
    commit: async (tx) => {
      // If a drain is restarted, its compensation keeps the node `draining`, because a node with another status could get new work.
      if (cause !== "cancel") return;
      const { node, workflowId, decommission } = context;
      await leaveDraining(tx, node.id, workflowId, decommission.priorStatus, "The drain was given up");
    },
  }),
};
