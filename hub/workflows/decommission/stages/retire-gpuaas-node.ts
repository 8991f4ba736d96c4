import { retire } from "../../../node/lifecycle.ts";
import { StageFailure } from "../../stage-failure.ts";
import { type DecommissionStageOf, RECORD_RETRY, recordTimeout, stateConflict } from "../decommission-context.ts";

/** A retired node keeps its identity, so that an operator can activate or remove the node later. */
export const retireGpuaasNode: DecommissionStageOf<"retire_gpuaas_node"> = {
  name: "retire_gpuaas_node",
  title: "Mark the node as retired",
  reentry: { rule: "from_top" },
  timeout: recordTimeout("The retirement"),
  retry: RECORD_RETRY,
  run: async (context) => ({
    kind: "done",
    message: "The node is retired",
    commit: async (tx) => {
      const step = await retire(tx, context.node.id, context.decommission.reason);
      if (step.kind === "refused") throw new StageFailure(stateConflict(context, step.actual, "retired"));
    },
  }),
};
