import { MAAS_STATUS } from "../../shared/maas-status.ts";
import { isReadInFull } from "../../shared/machine-details.ts";
import { readMaasSystemId } from "../db/queries/decommissions.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { readObservedMachine } from "../db/queries/maas-machines.ts";
import { revokeCertificates } from "../db/queries/node-certificates.ts";
import { readConditions, writeOwnCondition } from "../db/queries/node-conditions.ts";
import { forgetInventory, readSessionInventory } from "../db/queries/node-inventories.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { readSku } from "../db/queries/skus.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { EnrollmentToken, MaasMachineRow, Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { isHealthy } from "./manual-mode.ts";
import { moveNode } from "./move-node.ts";
import { compareGpus, otherHostBecause } from "./same-host.ts";

/**
 * The enrollment of an adopted host makes its node `enrolling`. When an adopted host enrolls, the hub forgets the node's stored inventory, because an
 * earlier agent of the node may have run on another host. A node in service whose host enrolls again stays in service, and its host has to prove anew
 * that it is the machine. An operation that makes the enrollment token, such as a reimage, has deployed the machine itself, which proves that the
 * host is the node's machine. If a person's command enrolls the host while an operation holds the node, the operation proves nothing about the host,
 * so `admitAdoptedNode` judges the host after the operation has ended.
 */
export async function enrollAdoptedNode(
  tx: Tx,
  node: Node,
  { workflowId }: Pick<EnrollmentToken, "workflowId">,
): Promise<void> {
  if (node.onboardingMode !== "adopted") return;
  if (node.status === "bootstrap_issued") {
    const move = { from: "bootstrap_issued", to: "enrolling", owner: "onboarding" } as const;
    await moveNode(tx, node.id, move, "The host enrolled with the token of its adoption");
  } else if (workflowId !== null) return;
  await forgetInventory(tx, node.id);
  await tellIdentity(
    tx,
    node,
    "Unknown",
    "AgentEnrolled",
    "The agent has enrolled; the hub waits for its report about the host.",
  );
}

const tellIdentity = (
  tx: Tx,
  node: Node,
  status: "True" | "False" | "Unknown",
  reason: string,
  message: string,
): Promise<void> => writeOwnCondition(tx, node, { type: "adoption.identity", status, reason, message });

/** True from the enrollment of an adopted host until the host has proved that it is the node's machine, or was refused. */
async function isUnproven(tx: Tx, { id, generation }: Node): Promise<boolean> {
  const identity = (await readConditions(tx, id, generation)).find(({ type }) => type === "adoption.identity");
  return identity?.status === "Unknown";
}

/**
 * Makes an adopted node `active` when its agent is healthy and runs on the host of the node's machine (decision N8). If the agent runs on another
 * host, the hub revokes the agent's certificate, and the node waits for the agent of the right host. The hub calls `admitAdoptedNode` after each
 * inventory and each readiness signal, because either may come first. `admitAdoptedNode` also judges a node in service whose host has enrolled again,
 * and leaves the node's status as it is.
 */
export async function admitAdoptedNode(tx: Tx, known: Node): Promise<void> {
  if (known.onboardingMode !== "adopted") return;
  if (known.status !== "enrolling" && !(await isUnproven(tx, known))) return;
  const node = await lockNode(tx, known.id);
  if (node === null || (node.status !== "enrolling" && !(await isUnproven(tx, node)))) return;
  const { id } = node;
  if ((await operationOfNode(tx, id)) !== null) return;
  const inventory = await readSessionInventory(tx, node);
  if (inventory === null) return;
  const machine = await boundMachine(tx, node);
  if (machine === null || machine.absent || machine.status !== MAAS_STATUS.deployed) {
    const is = machine === null || machine.absent ? "gone from MAAS" : `'${machine.statusName}' in MAAS`;
    const message = `The node's machine is ${is}, so nothing shows that the agent runs on it, and the node gets no tenant. Wait until the machine is Deployed, or remove the node.`;
    return tellIdentity(tx, node, "Unknown", "MachineNotDeployed", message);
  }
  const { details } = machine;
  if (!isReadInFull(details)) {
    const message = `Machine ${machine.systemId} was not read in full yet, so nothing shows that the agent runs on it, and the node gets no tenant. Run the reconciliation of the site.`;
    return tellIdentity(tx, node, "Unknown", "MachineNotRead", message);
  }
  const other = otherHostBecause(inventory, details);
  if (other !== null) return refuseHost(tx, node, machine, other);
  if (node.status === "enrolling" && !isHealthy(await readConditions(tx, id, node.generation))) return;
  await tellIdentity(tx, node, "True", "SameHost", `The agent runs on the host of machine ${machine.systemId}.`);
  const sku = await readSku(tx, node.sku);
  if (sku !== null)
    await writeOwnCondition(tx, node, {
      type: "adoption.gpus",
      ...compareGpus(inventory.gpus, { gpuVendor: sku.gpuVendor, gpusTotal: node.gpusTotal }),
    });
  if (node.status !== "enrolling") return;
  const move = { from: "enrolling", to: "active", owner: "onboarding" } as const;
  await moveNode(tx, id, move, "The adopted host is enrolled, healthy, and the host of the node's machine");
}

async function boundMachine(tx: Tx, node: Node): Promise<MaasMachineRow | null> {
  const systemId = await readMaasSystemId(tx, node.id);
  return systemId === null || node.siteId === null ? null : readObservedMachine(tx, node.siteId, systemId);
}

async function refuseHost(tx: Tx, node: Node, machine: MaasMachineRow, because: string): Promise<void> {
  const message = `An agent enrolled on another host than machine ${machine.systemId}: ${because}. Its certificate is void. Find out where the command ran, then order a new command for this node (re-enroll-node for a node in service) and run it on the right host.`;
  await revokeCertificates(tx, node.id, "all", `another host: ${because}`);
  await forgetInventory(tx, node.id);
  await tellIdentity(tx, node, "False", "OtherHost", message);
  await recordDomainEvent(tx, {
    type: "node.adoption.refused",
    subject: `nodes/${node.id}`,
    data: {
      node_id: node.id,
      hostname: node.hostname,
      site_id: machine.siteId,
      maas_system_id: machine.systemId,
      message,
    },
  });
}
