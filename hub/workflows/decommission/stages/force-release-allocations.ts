import { failure } from "../../../../shared/failures.ts";
import { lockOpenAllocation, setTurnover } from "../../../db/queries/allocations.ts";
import { lockNode } from "../../../db/queries/nodes.ts";
import { readWorkflow } from "../../../db/queries/workflows.ts";
import type { Tx } from "../../../db/tx.ts";
import { beginEnding } from "../../../node/allocation-moves.ts";
import { StageFailure } from "../../stage-failure.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  RECORD_RETRY,
  recordTimeout,
} from "../decommission-context.ts";

async function takeFromTenant(tx: Tx, context: DecommissionContext): Promise<void> {
  const { node, workflowId, decommission, input } = context;
  await lockNode(tx, node.id);
  const allocation = await lockOpenAllocation(tx, node.id);
  if (allocation === null) return;
  if (allocation.status !== "ending") {
    if (!input.force_release_allocation) {
      const message = `Node ${node.hostname} is allocated to ${allocation.tenant} (allocation ${allocation.id}), and the request does not take it from the tenant. Release the allocation and rerun, or cancel.`;
      const evidence = { node_id: node.id, allocation_id: allocation.id };
      throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message, evidence));
    }
    const actor = (await readWorkflow(tx, workflowId))?.requestedBy ?? "unknown";
    await beginEnding(tx, allocation, { reason: decommission.reason, forced: true, actor, operation: workflowId });
  }
  const endForced = allocation.endForced || allocation.status !== "ending";
  await setTurnover(tx, allocation.id, { decommissionId: workflowId, endForced });
}

/**
 * Ends the node's open allocation if the request says so (lifecycle 5.4), and takes over an allocation that is already `ending`. The hub records the
 * decommission as the operation that cleans up after the ended allocation, so that later stages of the decommission know the tenant's account.
 */
export const forceReleaseAllocations: DecommissionStageOf<"force_release_allocations"> = {
  name: "force_release_allocations",
  title: "Take the node from its tenant, if the request says so",
  reentry: { rule: "from_top" },
  timeout: recordTimeout("The end of the allocation"),
  retry: RECORD_RETRY,
  run: async (context) => ({
    kind: "done",
    message: "No tenant has a right to the node any more",
    commit: (tx) => takeFromTenant(tx, context),
  }),
};
