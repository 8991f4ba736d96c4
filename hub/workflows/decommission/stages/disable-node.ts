import { cancelTasksOf } from "../../../db/queries/tasks.ts";
import { enterDraining, leaveDraining } from "../../../node/lifecycle.ts";
import { StageFailure } from "../../stage-failure.ts";
import { type DecommissionStageOf, RECORD_RETRY, recordTimeout, stateConflict } from "../decommission-context.ts";

/** No new work is put on the node from here on (lifecycle 5.2): cordon, and the coarse state that says so, owned by this operation. */
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
      // An undrain of before that still waits, e.g. for its next try, would open the host behind this drain's back.
      await cancelTasksOf(tx, node.id, "node.undrain");
    },
  }),
  compensate: async (context, cause) => ({
    kind: "done",
    message: "The node is no longer draining; it is active again once its agent is heard of",
    commit: async (tx) => {
      // A restart begins with the same state: leaving it in between would let work in.
      if (cause === "restart") return;
      const { node, workflowId, decommission } = context;
      await leaveDraining(tx, node.id, workflowId, decommission.priorStatus, "The drain was given up");
    },
  }),
};
