import type { Leftover } from "../../shared/leftover.ts";
import type { MaasMachine } from "../maas/port.ts";
import type { OnboardContext } from "./context.ts";
import { machineEvidence } from "./verdict-table.ts";

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
    "Look at the host as long as there is need to. Then release its machine in MAAS; where its node was left quarantined, drain and remove that. After that the host may be onboarded again.",
  );

export const leftWithOther = (context: OnboardContext, machine: MaasMachine): Leftover =>
  left(
    context,
    machine,
    `${machine.owner?.slice(0, 64) ?? "nobody"}'s, not our MAAS user's`,
    "Find out who holds the machine in MAAS, and whether the host still runs what this onboarding deployed. Its owner releases it; then the host may be onboarded again.",
  );
