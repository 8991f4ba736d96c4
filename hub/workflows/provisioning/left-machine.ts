import type { Leftover } from "../../../shared/leftover.ts";
import type { MaasMachine } from "../../maas/port.ts";
import { machineEvidence } from "../machine/verdict-table.ts";
import type { ProvisionContext } from "./context.ts";

/**
 * Describes for operators the machine that a cancelled workflow leaves in MAAS. The status `cancelled` alone would suggest that the workflow left
 * nothing in MAAS (lifecycle 4.9).
 */
const left = (context: ProvisionContext, machine: MaasMachine, whose: string, nextAction: string): Leftover => ({
  message: `Machine ${context.host.hostname} (${machine.systemId}) stays '${machine.statusName}' in MAAS. ${whose}`,
  nextAction,
  evidence: machineEvidence(machine),
});

export const leftDeployed = (context: ProvisionContext, machine: MaasMachine): Leftover =>
  left(
    context,
    machine,
    "Muster's MAAS user owns it. It still runs the deployed system, whose agent no hub accepts any more.",
    "Investigate the host as long as you need it. If its node is quarantined, drain, release and remove the node; otherwise release the machine in MAAS. After that the host can be onboarded again.",
  );

export const leftWithOther = (context: ProvisionContext, machine: MaasMachine): Leftover =>
  left(
    context,
    machine,
    `Its owner is ${machine.owner?.slice(0, 64) ?? "nobody"}, and not Muster's MAAS user.`,
    `Find out who uses the machine in MAAS, and whether the host still runs the system that this ${context.operation} deployed. After the owner has released the machine, the host can be onboarded again.`,
  );
