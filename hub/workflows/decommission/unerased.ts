import { openAllocationsOf } from "../../db/queries/allocations.ts";
import type { Tx } from "../../db/tx.ts";
import { barUnerased, liftUnerased } from "../../node/health-override.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { needsEvidence } from "./erase-evidence.ts";
import { hostIsGone } from "./release-machine.ts";

const UNPROVEN = "MAAS did not show that the disks were erased";
/** The failures of a release after which disks may lack the requested erase, each with the text for the node's health override. */
const LACKS: ReadonlyMap<string, string> = new Map([
  ["erase_unproven", UNPROVEN],
  ["erase_fell_back", "MAAS erased disks by a weaker method than asked"],
  ["erase_failed", "MAAS failed to erase the disks"],
  ["erase_disproved", "blocks of the disks have the content from before the release"],
  ["disks_changed", "the host does not show all the disks that it had before the release"],
]);

/** True if a person may decide after a failure with the code `code` to continue the decommission without evidence of an erase. */
export const mayWaive = (code: string | null): boolean =>
  code === "erase_unproven" || code === "erase_fell_back" || speaksOfDisks(code);

/** True for a failure of the comparison of the disks after the deploy. */
export const speaksOfDisks = (code: string | null): boolean => code === "erase_disproved" || code === "disks_changed";

/** Says why a node's disks count as not erased after a failure with the code `code`, or after a cancel (null). */
export const lackOf = (code: string | null): string => LACKS.get(code ?? "") ?? UNPROVEN;

/**
 * Keeps new work off the machine of a tenant whose disks the operation did not erase, because it asked for no erase. The first boot of a later system
 * mounts the share disks that it finds, so the tenant's files would reach the next tenant.
 */
async function barTenantsDisks(tx: Tx, { node, decommission, workflowId }: DecommissionContext): Promise<void> {
  const allocation = (await openAllocationsOf(tx, [node.id])).get(node.id);
  // A reinstall gives the host back to the same tenant, whose allocation is active.
  if (allocation?.status !== "ending") return;
  await barUnerased(tx, {
    nodeId: node.id,
    target: decommission.maasSystemId,
    reason: `${decommission.mode} ${workflowId} released the machine after a tenant and asked for no erase of the disks`,
    setBy: `operation:${workflowId}`,
    neededErase: "quick",
  });
}

/**
 * If the requested erase has no evidence, sets a health override that keeps new work off the node (decision M9). `goneUnerased` also makes the writes
 * of `hostIsGone`. The health override for an erase without evidence outlives a cancelled decommission, so no later decommission without an erase
 * returns a tenant's disks to service.
 */
export const goneUnerased = (context: DecommissionContext, code: string | null) => async (tx: Tx) => {
  await hostIsGone(context)(tx);
  const { input, state, node, decommission, workflowId } = context;
  if (input.erase === "none") return barTenantsDisks(tx, context);
  if (!needsEvidence(context) || state.erase_reported === node.generation) return;
  await barUnerased(tx, {
    nodeId: node.id,
    target: decommission.maasSystemId,
    reason: `${lackOf(code)} (${input.erase}) in ${decommission.mode} ${workflowId}`,
    setBy: `operation:${workflowId}`,
    neededErase: input.erase,
  });
};

/**
 * Removes the node's health override for an earlier erase without evidence if this decommission's erase is as strong as the override requires. A
 * decommission after a tenant that asked for no erase sets the override in its place. `erasedAndGone` also makes the writes of `hostIsGone`.
 */
export const erasedAndGone = (context: DecommissionContext) => async (tx: Tx) => {
  await hostIsGone(context)(tx);
  const { input, node, decommission, workflowId } = context;
  if (input.erase === "none") return barTenantsDisks(tx, context);
  const reason = `${decommission.mode} ${workflowId} erased the disks (${input.erase})`;
  await liftUnerased(tx, node.id, input.erase, { by: `operation:${workflowId}`, reason });
};
