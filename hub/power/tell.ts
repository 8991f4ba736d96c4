import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import type { PowerAction } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Records the new state of a power action in the node's history and as a domain event; an event about an instance belongs to the tenant of the
 * instance.
 */
export async function tellPower(tx: Tx, action: PowerAction, by: string, message: string): Promise<void> {
  const { id, nodeId, hostname, siteId, allocationId, tenant, verb, state, errorCode } = action;
  await recordNodeEvent(tx, {
    nodeId,
    type: "power",
    owner: by,
    message: `Power ${verb} is ${state}: ${message}`,
    details: { action_id: id, verb, state },
  });
  const data = {
    action_id: id,
    node_id: nodeId,
    hostname,
    site_id: siteId,
    ...(allocationId === null ? {} : { allocation_id: allocationId }),
    ...(tenant === null ? {} : { tenant }),
    verb,
    state,
    by,
    message,
    ...(errorCode === null ? {} : { error_code: errorCode }),
  };
  await recordDomainEvent(
    tx,
    allocationId === null
      ? { type: "node.power.changed", subject: `nodes/${nodeId}`, data }
      : { type: "node.allocation.power", subject: `allocations/${allocationId}`, data },
  );
}
