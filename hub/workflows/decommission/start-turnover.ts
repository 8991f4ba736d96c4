import type { NodeId, WorkflowId } from "../../../shared/ids.ts";
import type { Tx } from "../../db/tx.ts";
import type { Ending } from "../../node/allocation-moves.ts";
import { startDecommission } from "./start-decommission.ts";

const AGENT_WAIT_SECONDS = 900;

/**
 * Begins the operation that clears a node of the tenant whose allocation ends (architecture 14.2). While no soft reset is built, this operation is a
 * drain that ends all login sessions. The allocation then ends when MAAS releases the node's machine, or when the node is removed. A forced turnover
 * does not wait for an agent that is not connected.
 */
export async function startTurnover(tx: Tx, nodeId: NodeId, { reason, forced, actor }: Ending): Promise<WorkflowId> {
  const agent_wait_seconds = forced ? 0 : AGENT_WAIT_SECONDS;
  const drain = { mode: "drain", reason, deadline_seconds: 0, force: true, agent_wait_seconds } as const;
  const created = await startDecommission(tx, nodeId, drain, actor);
  return created.decommission_id;
}
