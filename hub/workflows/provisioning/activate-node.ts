import { failure } from "../../../shared/failures.ts";
import type { Tx } from "../../db/tx.ts";
import { orderFirstBaseline } from "../../node/baseline.ts";
import { moveNode } from "../../node/move-node.ts";
import { StageFailure } from "../stage-failure.ts";
import { ownerOf, type ProvisionContext, provisioningOf } from "./context.ts";

/** Makes the node of a provisioned host `active`, and orders its first baseline. */
export async function activateNode(tx: Tx, context: ProvisionContext): Promise<void> {
  const { nodeId } = provisioningOf(context);
  const move = { from: "enrolling", to: "active", owner: ownerOf(context) } as const;
  const moved = await moveNode(
    tx,
    nodeId,
    move,
    `The ${context.operation} completed: deployed, syncing, agent healthy`,
  );
  if (moved.moved || moved.actual === "active") return orderFirstBaseline(tx, nodeId);
  const message = `Node ${context.host.hostname} is ${moved.actual ?? "gone"} instead of enrolling, so it was not made active. Find out who changed the node's status and why, then rerun.`;
  throw new StageFailure(
    failure("state_ambiguity", "node_state_conflict", message, { node_id: nodeId, node_status: moved.actual }),
  );
}
