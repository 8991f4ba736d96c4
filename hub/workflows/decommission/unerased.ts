import type { Tx } from "../../db/tx.ts";
import { barUnerased, liftUnerased } from "../../node/health-override.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { needsEvidence } from "./erase-evidence.ts";
import { hostIsGone } from "./release-machine.ts";

const UNPROVEN = "MAAS did not show that the disks were erased";
/** The failures of a release after which the disks may not be erased as asked, each in words for the node's health override. */
const LACKS: ReadonlyMap<string, string> = new Map([
  ["erase_unproven", UNPROVEN],
  ["erase_fell_back", "MAAS erased disks by a weaker method than asked"],
  ["erase_failed", "MAAS failed to erase the disks"],
]);

/** True if a person may decide after this failure that the operation continues without evidence of an erase. */
export const mayWaive = (code: string | null): boolean => code === "erase_unproven" || code === "erase_fell_back";

/** Says why a node's disks count as not erased after a failure with this code, or after a cancel (null). */
export const lackOf = (code: string | null): string => LACKS.get(code ?? "") ?? UNPROVEN;

/**
 * The writes of `hostIsGone`, and the node's bar against new work if the operation asked for an erase that nothing proves (decision M9). The bar
 * outlives a cancelled operation, so a later operation without an erase does not return the node with the disks of its earlier tenant.
 */
export const goneUnerased = (context: DecommissionContext, code: string | null) => async (tx: Tx) => {
  await hostIsGone(context)(tx);
  const { input, state, node, decommission, workflowId } = context;
  if (input.erase === "none" || !needsEvidence(context) || state.erase_reported === node.generation) return;
  await barUnerased(tx, {
    nodeId: node.id,
    target: decommission.maasSystemId,
    reason: `${lackOf(code)} (${input.erase}) in ${decommission.mode} ${workflowId}`,
    setBy: `operation:${workflowId}`,
    neededErase: input.erase,
  });
};

/** The writes of `hostIsGone`, and the end of the node's bar if the operation's erase is at least as strong as the erase that the bar needs. */
export const erasedAndGone = (context: DecommissionContext) => async (tx: Tx) => {
  await hostIsGone(context)(tx);
  const { input, node, decommission, workflowId } = context;
  if (input.erase === "none") return;
  const reason = `${decommission.mode} ${workflowId} erased the disks (${input.erase})`;
  await liftUnerased(tx, node.id, input.erase, { by: `operation:${workflowId}`, reason });
};
