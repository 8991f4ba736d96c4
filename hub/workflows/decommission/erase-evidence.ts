import { type Failure, failure } from "../../../shared/failures.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import type { MaasEvent } from "../../maas/port.ts";
import { type JudgedMachine, machineEvidence } from "../machine/verdict-table.ts";
import type { DecommissionContext, DecommissionState } from "./decommission-context.ts";

type Asked = Pick<DecommissionContext, "input" | "state" | "node">;

/** To find the end of an erase, the hub reads this many of a machine's newest events. */
export const ERASE_EVENTS = 100;
const ERASED = "Disks erased";
/** The types of MAAS's events about the deploy of a machine. An erase before the last deploy says nothing about what the installed system wrote. */
const OF_DEPLOY: readonly string[] = ["Deploying", "Deployed", "Image Deployed"];

const isSeen = ({ state, node }: Asked): boolean => state.erase_seen === node.generation;

const isWaived = ({ state, node }: Asked): boolean => state.erase_waived === node.generation;

/**
 * True if the operation asks for an erase of which Muster has no evidence yet, and no person has decided to continue without evidence. A `force` that
 * replaced an agent says nothing about an erase.
 */
export const lacksEvidence = (context: Asked): boolean =>
  context.input.erase !== "none" && !isWaived(context) && !isSeen(context);

/** True if the status of the machine is the first evidence of the erase that the operation asked for. */
export const isEvidence = (context: Asked, status: number): boolean =>
  status === MAAS_STATUS.disk_erasing && context.state.release_intent === context.node.generation && !isSeen(context);

/** The fact that MAAS erases the disks, if the machine's status shows it. */
export const eraseSeen = (
  context: Asked,
  { status }: Pick<JudgedMachine, "status">,
): Pick<DecommissionState, "erase_seen"> =>
  isEvidence(context, status) ? { erase_seen: context.node.generation } : {};

/** True if MAAS reports that it erased the disks since the last deploy. The newest event comes first. */
export function reportsErase(events: readonly Pick<MaasEvent, "type">[]): boolean {
  const deployed = events.findIndex(({ type }) => OF_DEPLOY.includes(type));
  const since = deployed === -1 ? events : events.slice(0, deployed);
  return since.some(({ type }) => type === ERASED);
}

/** The failure of a release whose machine is free without evidence of the erase, because somebody may have released it without an erase. */
export const eraseUnproven = ({ input, node }: Asked, machine: JudgedMachine): Failure =>
  failure(
    "state_ambiguity",
    "erase_unproven",
    `Machine ${machine.hostname} (${machine.systemId}) of node ${node.hostname} is '${machine.statusName}' in MAAS, and nothing shows that its disks were erased (${input.erase}). Erase the disks, then force.`,
    { ...machineEvidence(machine), erase: input.erase },
  );
