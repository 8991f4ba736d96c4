import type { WorkflowId } from "../../../shared/ids.ts";
import { nodePolicies } from "../../db/queries/node-profiles.ts";
import { newestPowerActions } from "../../db/queries/power-actions.ts";
import { wasReinstalled } from "../../db/queries/reinstalls.ts";
import { hadRootBy } from "../../db/queries/tenancies.ts";
import type { AllocationRow, Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { Ending } from "../../node/allocation-moves.ts";
import { turnoverMode } from "../../node/turnover-mode.ts";
import { startDecommission } from "./start-decommission.ts";

const AGENT_WAIT_SECONDS = 900;
/**
 * Before a host is cleaned after its tenant, the hub switches it on if a power request switched it off, which may take a shutdown and then a boot
 * (docs/timeouts.md).
 */
const AGENT_WAIT_WHEN_OFF_SECONDS = 2100;

/**
 * Begins the operation that cleans a node after its tenant (architecture 14.2). The node's profile and the tenant's rights decide whether a soft
 * reset or a reimage cleans the node after its tenant; after a reinstall it is a reimage (decision N11). If an operator forces the end of an
 * allocation, the cleaning fails at once while the agent is not connected, so that a person decides.
 */
export async function startTurnover(
  tx: Tx,
  node: Node,
  allocation: Pick<AllocationRow, "reinstalledGeneration" | "grantsRoot" | "rootBy">,
  { reason, forced, actor }: Ending,
): Promise<WorkflowId> {
  const policy = (await nodePolicies(tx, [node.id])).get(node.id) ?? null;
  const facts = { grantsRoot: hadRootBy(allocation), onboardingMode: node.onboardingMode, policy };
  // The agent took the snapshot of a reinstalled host (the baseline) when the tenant's data was already on its disks, so a soft reset would take the
  // data for a part of the clean host.
  const mode = wasReinstalled(allocation) ? "reimage" : turnoverMode(facts);
  const power = (await newestPowerActions(tx, [node.id])).get(node.id);
  const mayBeOff = power?.generation === node.generation && (power.verb === "off" || power.state !== "done");
  const wait = mayBeOff ? AGENT_WAIT_WHEN_OFF_SECONDS : AGENT_WAIT_SECONDS;
  const asked = { reason, agent_wait_seconds: forced ? 0 : wait };
  const request =
    mode === "reimage"
      ? ({ mode, erase: "secure", ...asked } as const)
      : ({ mode, storage_cleanup: "all", ...asked } as const);
  const created = await startDecommission(tx, node.id, request, actor);
  return created.decommission_id;
}
