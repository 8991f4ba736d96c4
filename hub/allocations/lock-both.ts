import { ApiError } from "../../shared/api/errors.ts";
import type { AllocationId } from "../../shared/ids.ts";
import { lockAllocation, readAllocation } from "../db/queries/allocations.ts";
import { lockNode } from "../db/queries/nodes.ts";
import type { AllocationRow, Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Every transaction locks a node before the node's allocation, because transactions that lock in different orders can deadlock. `node` is null if the
 * node's row no longer exists. `lockBoth` throws `not_found` if no allocation has the id.
 */
export async function lockBoth(
  tx: Tx,
  id: AllocationId,
): Promise<{ readonly allocation: AllocationRow; readonly node: Node | null }> {
  const seen = await readAllocation(tx, id);
  const node = seen === null ? null : await lockNode(tx, seen.nodeId);
  const allocation = await lockAllocation(tx, id);
  if (allocation === null) throw new ApiError("not_found", `There is no allocation ${id}.`);
  return { allocation, node };
}
