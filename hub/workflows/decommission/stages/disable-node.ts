import { cancelTasksOf } from "../../../db/queries/tasks.ts";
import { enterDraining, leaveDraining } from "../../../node/lifecycle.ts";
import { StageFailure } from "../../stage-failure.ts";
import { type DecommissionStageOf, RECORD_RETRY, recordTimeout, stateConflict } from "../decommission-context.ts";

/** Cordons the node and sets its status to `draining`, owned by this operation, so that no new work is scheduled on it (lifecycle 5.2). */
export const disableNode: DecommissionStageOf<"disable_node"> = {
  name: "disable_node",
  title: "Cordon the node and mark it as draining",
  reentry: { rule: "from_top" },
  timeout: recordTimeout("The cordon"),
  retry: RECORD_RETRY,
  run: async (context) => ({
    kind: "done",
    message:
      context.node.status === "draining" || context.node.status === "retired"
        ? `The node is ${context.node.status} already`
        : "The node is cordoned and draining",
    commit: async (tx) => {
      const { node, workflowId, decommission } = context;
      const step = await enterDraining(tx, node.id, workflowId, decommission.reason);
      if (step.kind === "refused") throw new StageFailure(stateConflict(context, step.actual, "drained"));
      // An `undrain` task of an earlier operation may still be queued, e.g. for a retry. An old `undrain` task would reopen the host during this
      // drain.
      await cancelTasksOf(tx, node.id, "node.undrain");
    },
  }),
  compensate: async (context, cause) => ({
    kind: "done",
    message: "The node is no longer draining; it becomes active again when its agent reports",
    commit: async (tx) => {
      // A restarted drain begins with the status `draining` again, so the node keeps `draining` in between. Another status would let new work onto
      // the node.
      if (cause === "restart") return;
      const { node, workflowId, decommission } = context;
      await leaveDraining(tx, node.id, workflowId, decommission.priorStatus, "The drain was given up");
    },
  }),
};
