import { failure } from "../../../shared/failures.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { isHostReleased } from "../../db/queries/machine-releases.ts";
import { lastNodeOfMachine } from "../../db/queries/node-machines.ts";
import type { MaasPort } from "../../maas/port.ts";
import type { Failed } from "../engine/stage.ts";
import { machineEvidence } from "../machine/verdict-table.ts";
import type { OnboardContext } from "./context.ts";
import type { OnboardState } from "./onboard-state.ts";

/**
 * The failure of an onboarding if a removed node left the machine deployed in MAAS without a release. The onboarding does not hold a machine that a
 * removed node left deployed, so that `release-node` can hold the machine.
 */
export async function leftByRemovedNode(
  maas: MaasPort,
  { services, site, host }: OnboardContext,
  systemId: string,
): Promise<Failed<OnboardState> | null> {
  const node = await lastNodeOfMachine(services.db, site.id, systemId);
  if (node?.status !== "deleted" || (await isHostReleased(services.db, node))) return null;
  const machine = await maas.readMachine(systemId);
  if (machine?.status !== MAAS_STATUS.deployed || machine.owner !== (await maas.whoami()).username) return null;
  const message = `Machine ${systemId} is still deployed for node ${node.hostname} (${node.id}), which was removed without a release. Run release-node ${node.id}; when it has completed, rerun the onboarding of ${host.hostname}.`;
  const evidence = { ...machineEvidence(machine), node_id: node.id };
  return { kind: "failed", failure: failure("state_ambiguity", "left_deployed", message, evidence) };
}
