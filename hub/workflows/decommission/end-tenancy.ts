import type { NodeId, WorkflowId } from "../../../shared/ids.ts";
import { setTurnover } from "../../db/queries/allocations.ts";
import { lastRecordOfAllocation } from "../../db/queries/sanitization-records.ts";
import { lockAllocationOfOperation } from "../../db/queries/tenancies.ts";
import type { Tx } from "../../db/tx.ts";
import { moveAllocation } from "../../node/allocation-moves.ts";

/**
 * Ends the allocation whose turnover is complete. Without a sanitization record the allocation stays `ending`. If the host of an `ending` allocation
 * without a sanitization record is gone, the hub's periodic work on allocations writes the record and ends the allocation; otherwise a person must
 * release the allocation again. After a failed or cancelled cleaning between tenants (turnover), the allocation stays `ending`, so that no other
 * tenant gets the node.
 */
export async function endTenancy(tx: Tx, nodeId: NodeId, operation: WorkflowId, mode: string): Promise<void> {
  const row = await lockAllocationOfOperation(tx, nodeId, operation);
  if (row?.status !== "ending" || (await lastRecordOfAllocation(tx, nodeId, row.id)) === null) return;
  const message = `The ${mode} of the node is complete`;
  await moveAllocation(tx, row, { from: "ending", to: "ended" }, { owner: "muster", message });
}

/** After a cancelled cleaning between tenants (turnover), lets the hub begin a new one for the allocation once the node is free and in service. */
export async function leaveTenancy(tx: Tx, nodeId: NodeId, operation: WorkflowId): Promise<void> {
  const row = await lockAllocationOfOperation(tx, nodeId, operation);
  if (row?.status === "ending") await setTurnover(tx, row.id, { decommissionId: null, endForced: row.endForced });
}
