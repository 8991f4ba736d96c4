import type { DecommissionCreated } from "../../shared/api/decommissions.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { AllocationId } from "../../shared/ids.ts";
import { mustBeDeletable } from "../allocations/end-allocation.ts";
import { lockBoth } from "../allocations/lock-both.ts";
import type { AllocationRow } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { tellChange } from "../node/allocation-moves.ts";
import type { Claimant } from "../repair/claim-repair.ts";
import { startDecommission } from "../workflows/decommission/start-decommission.ts";
import { mustKnowTenant, mustNotBeRepairedByOther } from "./request-power.ts";

/** How long the new system's agent may be away before the reinstall stops for a person. */
const AGENT_WAIT_SECONDS = 900;

/**
 * Orders that the host of an instance is installed anew and given back to its tenant (decision N11). What prevents the release of an instance also
 * prevents its reinstall, except that whoever repairs the machine may reinstall it during the repair. If `reinstallInstance` refuses the request, it
 * throws ApiError and writes nothing.
 */
export async function reinstallInstance(
  tx: Tx,
  id: AllocationId,
  { reason, by }: { readonly reason: string; readonly by: Claimant },
): Promise<{ readonly allocation: AllocationRow; readonly created: DecommissionCreated }> {
  const { allocation, node } = await lockBoth(tx, id);
  if (allocation.status !== "active" || node === null)
    throw new ApiError(
      "conflict",
      `Instance ${id} is ${node === null ? "without a node" : allocation.status}, and only an active instance is reinstalled.`,
      { context: { allocation_id: id } },
    );
  const isByRepairer = await mustNotBeRepairedByOther(tx, node, by, "installs its host anew");
  await mustBeDeletable(tx, allocation, { cannot: "cannot be reinstalled", or: "", isByRepairer });
  await mustKnowTenant(tx, node);
  const request = { mode: "reinstall", allocation_id: id, reason, agent_wait_seconds: AGENT_WAIT_SECONDS } as const;
  const created = await startDecommission(tx, node.id, request, by.name);
  await tellChange(tx, allocation, by.name, `the host is installed anew by ${created.decommission_id}: ${reason}`);
  return { allocation, created };
}
