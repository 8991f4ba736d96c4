import { ApiError } from "../../../shared/api/errors.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";
import { lockOpenAllocation } from "../../db/queries/allocations.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { beginEnding } from "../../node/allocation-moves.ts";

interface Wanted {
  readonly mode: DecommissionMode;
  readonly reason: string;
  readonly force_release_allocation?: boolean | undefined;
}

/**
 * Refuses an operation on a node that a tenant uses (lifecycle 5.9). A drain may take the node from the tenant if its request says so; the allocation
 * is then `ending`. An operation may begin on a node whose allocation is `ending` already.
 */
export async function mustNotTakeFromTenant(tx: Tx, node: Node, wanted: Wanted, actor: string): Promise<void> {
  const allocation = await lockOpenAllocation(tx, node.id);
  if (allocation === null || allocation.status === "ending") return;
  if (wanted.force_release_allocation === true)
    return beginEnding(tx, allocation, { reason: wanted.reason, forced: true, actor });
  const or = wanted.mode === "drain" ? ", or drain the node with force_release_allocation" : "";
  throw new ApiError(
    "allocation_exists",
    `Node ${node.hostname} is allocated to ${allocation.tenant} (allocation ${allocation.id}), so no ${wanted.mode} can begin. Release the allocation first${or}.`,
    { context: { node_id: node.id, allocation_id: allocation.id } },
  );
}
