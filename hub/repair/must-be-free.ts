import { ApiError } from "../../shared/api/errors.ts";
import { openAllocationsOf } from "../db/queries/allocations.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Throws `conflict` while a tenant uses the machine of a full repair. Only an online repair has the tenant's consent to work on the machine (decision
 * R2). An allocation that is `ending` does not prevent a full repair, because its tenant has given the machine up.
 */
export async function mustBeFree(
  tx: Tx,
  { nodeId, hostname, accessAllocationId }: Pick<RepairCase, "nodeId" | "hostname" | "accessAllocationId">,
): Promise<void> {
  const allocation = (await openAllocationsOf(tx, [nodeId])).get(nodeId);
  if (allocation === undefined || allocation.status === "ending" || allocation.id === accessAllocationId) return;
  throw new ApiError(
    "conflict",
    `Node ${hostname} is allocated to ${allocation.tenant} (allocation ${allocation.id}, ${allocation.status}), so it takes no full repair. Release the allocation first. For a repair with the tenant on the machine, use open-online-repair instead of a full repair.`,
    { context: { node_id: nodeId, allocation_id: allocation.id } },
  );
}
