import type { Leftover } from "../../../shared/leftover.ts";
import type { MaasMachine } from "../../maas/port.ts";
import { machineEvidence } from "../machine/verdict-table.ts";
import type { ProvisionContext } from "./context.ts";

/**
 * The machine that a cancelled workflow leaves in MAAS. The status `cancelled` alone would suggest that the workflow left nothing (lifecycle 4.9).
 */
const left = (context: ProvisionContext, machine: MaasMachine, whose: string, nextAction: string): Leftover => ({
  message: `Machine ${context.host.hostname} (${machine.systemId}) is still '${machine.statusName}' in MAAS and ${whose}; it was left as it is.`,
  nextAction,
  evidence: machineEvidence(machine),
});

export const leftDeployed = (context: ProvisionContext, machine: MaasMachine): Leftover =>
  left(
    context,
    machine,
    "our MAAS user's, with the system that was deployed, whose agent no hub lets in any more",
    "Look at the host as long as there is need to. Where its node was left quarantined, drain, release and remove that; else release its machine in MAAS. After that the host may be onboarded again.",
  );

export const leftWithOther = (context: ProvisionContext, machine: MaasMachine): Leftover =>
  left(
    context,
    machine,
    `${machine.owner?.slice(0, 64) ?? "nobody"}'s, not our MAAS user's`,
    "Find out who holds the machine in MAAS, and whether the host still runs what this onboarding deployed. Its owner releases it; then the host may be onboarded again.",
  );
