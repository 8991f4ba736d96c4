import { ApiError } from "../../../shared/api/errors.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import { readBmcAddress } from "../../db/queries/decommissions.ts";
import { holdMachine } from "../../db/queries/machine-holds.ts";
import { isHostReleased } from "../../db/queries/machine-releases.ts";
import { lastMachineOf, lastNodeOfMachine } from "../../db/queries/node-machines.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { normalAddress } from "../../maas/power-address.ts";

/**
 * Reserves the last machine of a removed node for a release of the machine. Until the release ends, the operation holds the machine, so that no
 * onboarding uses the machine. `takeLeftMachine` throws an ApiError if MAAS has already released the machine, or if another node or workflow has the
 * machine.
 */
export async function takeLeftMachine(tx: Tx, node: Node, id: WorkflowId): Promise<string> {
  const refuse = (why: string, context: Record<string, string> = {}) =>
    new ApiError("conflict", `No machine can be released for node ${node.hostname}, which is deleted: ${why}`, {
      context: { node_id: node.id, ...context },
    });
  const machine = await lastMachineOf(tx, node.id);
  if (machine === null) throw refuse("it was no machine in MAAS.");
  const { siteId, systemId } = machine;
  if (await isHostReleased(tx, node)) throw refuse(`machine ${systemId} was released. Onboard the host again.`);
  const since = await lastNodeOfMachine(tx, siteId, systemId);
  if (since !== null && since.id !== node.id)
    throw refuse(`machine ${systemId} is now node ${since.hostname} (${since.id}), which is ${since.status}.`);
  const holder = await holdMachine(tx, id, { siteId, systemId, bmcs: [normalAddress(machine.ipmiIp)] });
  if (holder !== null)
    throw refuse(`machine ${systemId} belongs to ${holder.kind} ${holder.id}. Cancel that, or wait for it.`, {
      [`${holder.kind}_id`]: holder.id,
    });
  return systemId;
}

/** Holds the node's machine until the end of the decommission, because the node's binding to the machine ends earlier. */
export async function holdOwnMachine(tx: Tx, node: Node, id: WorkflowId, systemId: string): Promise<void> {
  const bmc = await readBmcAddress(tx, node.id);
  const { siteId } = node;
  if (siteId === null) return;
  const bmcs = bmc === null ? [] : [normalAddress(bmc)];
  const holder = await holdMachine(tx, id, { siteId, systemId, bmcs });
  if (holder === null) return;
  throw new ApiError(
    "conflict",
    `No full_decommission of node ${node.hostname} can begin: ${holder.kind} ${holder.id} holds machine ${systemId}. Cancel that, or wait for it.`,
    { context: { node_id: node.id, [`${holder.kind}_id`]: holder.id } },
  );
}
