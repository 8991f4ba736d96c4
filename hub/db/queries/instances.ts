import type { AllocationId } from "../../../shared/ids.ts";
import { isReadInFull } from "../../../shared/machine-details.ts";
import { FAILED_WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { and, eq, inArray } from "../orm.ts";
import { allocations, maasMachines, nodeMaasState, nodes, workflows } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** What the database says about the host of an allocation, besides the node's readiness. */
export interface InstanceHost {
  readonly hasFailedTurnover: boolean;
  readonly powerState: string | null;
  readonly zone: string | null;
}

/** Returns the hosts of the allocations, by one SQL statement for any number of allocations. */
export async function readInstanceHosts(
  db: Db | Tx,
  ids: readonly AllocationId[],
): Promise<ReadonlyMap<AllocationId, InstanceHost>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({
      id: allocations.id,
      turnover: workflows.status,
      powerState: maasMachines.powerState,
      details: maasMachines.details,
    })
    .from(allocations)
    .leftJoin(nodes, eq(nodes.id, allocations.nodeId))
    .leftJoin(workflows, eq(workflows.id, allocations.decommissionId))
    .leftJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
    .leftJoin(
      maasMachines,
      and(eq(maasMachines.siteId, nodes.siteId), eq(maasMachines.systemId, nodeMaasState.maasSystemId)),
    )
    .where(inArray(allocations.id, [...ids]));
  const failed: readonly string[] = FAILED_WORKFLOW_STATUSES;
  return new Map(
    rows.map(({ id, turnover, powerState, details }) => [
      id,
      {
        hasFailedTurnover: turnover !== null && failed.includes(turnover),
        powerState,
        zone: details !== null && isReadInFull(details) && details.zone !== "" ? details.zone : null,
      },
    ]),
  );
}
