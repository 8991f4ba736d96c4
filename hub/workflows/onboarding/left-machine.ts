import { failure } from "../../../shared/failures.ts";
import type { Leftover } from "../../../shared/leftover.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { isHostReleased } from "../../db/queries/machine-releases.ts";
import { lastNodeOfMachine } from "../../db/queries/node-machines.ts";
import type { MaasMachine, MaasPort } from "../../maas/port.ts";
import type { Failed } from "../engine/stage.ts";
import { machineEvidence } from "../machine/verdict-table.ts";
import type { OnboardContext } from "./context.ts";
import type { OnboardState } from "./onboard-state.ts";

/** What a cancelled onboarding leaves in MAAS, for `cancelled` alone says that nothing of it is there (lifecycle 4.9). */
const left = (context: OnboardContext, machine: MaasMachine, whose: string, nextAction: string): Leftover => ({
  message: `Machine ${context.onboarding.hostname} (${machine.systemId}) is still '${machine.statusName}' in MAAS and ${whose}; it was left as it is.`,
  nextAction,
  evidence: machineEvidence(machine),
});

export const leftDeployed = (context: OnboardContext, machine: MaasMachine): Leftover =>
  left(
    context,
    machine,
    "our MAAS user's, with the system that was deployed, whose agent no hub lets in any more",
    "Look at the host as long as there is need to. Where its node was left quarantined, drain, release and remove that; else release its machine in MAAS. After that the host may be onboarded again.",
  );

export const leftWithOther = (context: OnboardContext, machine: MaasMachine): Leftover =>
  left(
    context,
    machine,
    `${machine.owner?.slice(0, 64) ?? "nobody"}'s, not our MAAS user's`,
    "Find out who holds the machine in MAAS, and whether the host still runs what this onboarding deployed. Its owner releases it; then the host may be onboarded again.",
  );

/**
 * A machine that was a node which is removed, and that nobody has released since, is told before it is taken: so its release can take it. Null: it is
 * nothing of that kind.
 */
export async function leftByRemovedNode(
  maas: MaasPort,
  { services, site, onboarding }: OnboardContext,
  systemId: string,
): Promise<Failed<OnboardState> | null> {
  const node = await lastNodeOfMachine(services.db, site.id, systemId);
  if (node?.status !== "deleted" || (await isHostReleased(services.db, node))) return null;
  const machine = await maas.readMachine(systemId);
  if (machine?.status !== MAAS_STATUS.deployed || machine.owner !== (await maas.whoami()).username) return null;
  const message = `Machine ${systemId} is deployed still, as node ${node.hostname} (${node.id}) left it, which was removed without a release. Run release-node ${node.id}; once that has completed, rerun the onboarding of ${onboarding.hostname}.`;
  const evidence = { ...machineEvidence(machine), node_id: node.id };
  return { kind: "failed", failure: failure("state_ambiguity", "left_deployed", message, evidence) };
}
