import type { AdoptionDifference, AdoptionRefusal } from "../../shared/adoption.ts";
import type { Inventory } from "../../shared/inventory.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { compareGpus, otherHostBecause } from "../node/same-host.ts";
import {
  type AdoptionPolicy,
  judgeMachine,
  type MachineToAdopt,
  nameOf,
  refusalsFor,
  type Surroundings,
} from "./rules.ts";

/**
 * The rules of a binding as pure functions (decision N8): a node of manual mode, whose host has an agent, gets the machine in MAAS that the host is.
 */
export interface NodeToBind {
  readonly id: string;
  readonly hostname: string;
  readonly status: NodeStatus;
  readonly gpusTotal: number;
  readonly gpuVendor: Parameters<typeof compareGpus>[1]["gpuVendor"];
  /** What the agent of the open session reported of its host; null without an open session or before its report. */
  readonly host: Pick<Inventory, "system" | "interfaces" | "gpus"> | null;
}
export interface BindingVerdict {
  readonly outcome: "bound" | "refused";
  /** How the host's GPUs compare with the node's SKU; null if the hub does not know them. */
  readonly gpus: ReturnType<typeof compareGpus> | null;
  readonly differences: readonly AdoptionDifference[];
  readonly refusals: readonly AdoptionRefusal[];
}

export function judgeBinding(
  node: NodeToBind,
  machine: MachineToAdopt,
  around: Surroundings,
  policy: AdoptionPolicy,
): BindingVerdict {
  const namesake = around.namesake?.id === node.id ? null : around.namesake;
  const judged = judgeMachine(machine, { ...around, boundTo: null, namesake }, policy);
  const gpus = node.host === null ? null : compareGpus(node.host.gpus, node);
  const obstacles = [
    ...judged.refusals.filter(({ code }) => code !== "difference"),
    ...nodeObstacles(node, machine, around),
    ...hostObstacles(node, machine),
  ];
  const differences = [...judged.differences, ...(gpus === null ? [] : gpuDifferences(gpus))];
  const refusals = obstacles.length > 0 ? obstacles : refusalsFor(machine, differences, policy);
  return { outcome: refusals.length === 0 ? "bound" : "refused", gpus, differences, refusals };
}

function nodeObstacles(node: NodeToBind, machine: MachineToAdopt, { boundTo }: Surroundings): AdoptionRefusal[] {
  const found: AdoptionRefusal[] = [];
  if (boundTo !== null)
    found.push({
      code: "machine_taken",
      message: `${nameOf(machine)} is the machine of node ${boundTo.id}, which is ${boundTo.status}. A machine has one node.`,
    });
  if (node.hostname !== machine.hostname)
    found.push({
      code: "hostname_differs",
      message: `${nameOf(machine)} has another hostname than node ${node.hostname}. Rename the machine in MAAS, or remove the node and adopt the machine.`,
    });
  if (node.status !== "active" && node.status !== "quarantined")
    found.push({
      code: "not_in_service",
      message: `Node ${node.hostname} is ${node.status}. Only a node that is active or quarantined is bound to a machine.`,
    });
  return found;
}

/** The hub knows which host a node has only from the report of a connected agent, so a node without one cannot prove that its host is the machine. */
function hostObstacles({ hostname, host }: NodeToBind, machine: MachineToAdopt): AdoptionRefusal[] {
  if (host === null) {
    const message = `The agent of node ${hostname} is not connected or has not reported its host, so nothing proves that the host is machine ${machine.systemId}. Wait until the agent has reported.`;
    return [{ code: "host_unknown", message }];
  }
  const other = machine.details === null ? null : otherHostBecause(host, machine.details);
  if (other === null) return [];
  const message = `The host of node ${hostname} is not machine ${machine.systemId}: ${other}. Name the machine of this host.`;
  return [{ code: "other_host", message }];
}

function gpuDifferences({ status, message }: ReturnType<typeof compareGpus>): AdoptionDifference[] {
  return status === "False"
    ? [{ kind: "other_gpus", expected: "the GPUs of the SKU", found: "other GPUs", message }]
    : [];
}
