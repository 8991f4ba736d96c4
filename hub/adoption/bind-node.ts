import type { MachineBinding, MachineBound } from "../../shared/api/adoptions.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId, SiteId } from "../../shared/ids.ts";
import { isReadInFull } from "../../shared/machine-details.ts";
import { readMaasSystemId } from "../db/queries/decommissions.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { deleteBinding, hasReleasedMachine, insertBinding, readAdoption } from "../db/queries/node-adoptions.ts";
import { removeConditions, writeOwnCondition } from "../db/queries/node-conditions.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { readSessionInventory } from "../db/queries/node-inventories.ts";
import { readSku } from "../db/queries/skus.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { MaasMachineRow, Node, NodeAdoption } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { normalAddress } from "../maas/power-address.ts";
import { inheritHealthOverrides } from "../node/health-override.ts";
import { heldError, mustLockNode } from "../workflows/decommission/start-decommission.ts";
import { type BindingVerdict, judgeBinding, type NodeToBind } from "./binding-rules.ts";
import { type MaasFacts, readJudging } from "./judge-machines.ts";

const conflict = (node: Node, message: string): ApiError =>
  new ApiError("conflict", `Node ${node.hostname} ${message}`, {
    context: { node_id: node.id, node_status: node.status },
  });

/** Returns the site whose machine a request binds to the node: the node's own site, or the site that the request names for a node without a site. */
export function siteOfBinding(node: Pick<Node, "hostname" | "siteId">, request: MachineBinding): SiteId {
  const siteId = node.siteId ?? request.site_id;
  if (siteId === undefined)
    throw new ApiError("validation_failed", `Node ${node.hostname} has no site. Name the site of the machine.`, {
      errors: [{ pointer: "/site_id", message: "is needed for a node without a site" }],
    });
  if (request.site_id !== undefined && request.site_id !== siteId)
    throw new ApiError(
      "conflict",
      `Node ${node.hostname} belongs to another site. Name a machine of the node's site.`,
      {
        errors: [{ pointer: "/site_id", message: "is not the site of the node" }],
      },
    );
  return siteId;
}

/**
 * Binds a node of manual mode to its machine in MAAS, so that the node becomes an adopted node (decision N8). A repeated request changes nothing. The
 * binding of a node to its MAAS machine changes nothing on the host or in MAAS.
 */
export async function bindNode(
  tx: Tx,
  id: NodeId,
  request: MachineBinding,
  facts: MaasFacts,
  boundBy: string,
): Promise<MachineBound> {
  const node = await mustLockNode(tx, id);
  const answer = { node_id: id, plan: request.plan, maas_system_id: request.maas_system_id };
  if (await isBoundAlready(tx, node, request))
    return { ...answer, outcome: "exists", gpus: null, differences: [], refusals: [] };
  const holder = await operationOfNode(tx, id);
  if (holder !== null) throw heldError(node, holder, "it cannot be bound to a machine");
  const siteId = siteOfBinding(node, request);
  const select = { systemIds: [request.maas_system_id], hostnames: [], filter: null };
  const judging = await readJudging(tx, siteId, { ...request, select, most: 1 }, facts);
  const [found] = judging.found;
  if (found === undefined)
    throw conflict(
      node,
      `was not bound: Muster has seen no machine ${request.maas_system_id} at site ${judging.site.name}. Correct the request, or run the reconciliation of the site and ask again.`,
    );
  const toBind = await asNode(tx, node);
  const verdict = judgeBinding(toBind, found.facts, found.around, judging.policy);
  if (!request.plan) {
    mustBeBindable(node, verdict);
    const adoption = { siteId, profileId: judging.profile.id, adoptedBy: boundBy, differences: verdict.differences };
    await write(tx, node, adoption, found.machine, { verdict, bmc: facts.bmcs.get(found.machine.systemId) ?? "" });
  }
  const { outcome, gpus } = verdict;
  return { ...answer, outcome, gpus, differences: [...verdict.differences], refusals: [...verdict.refusals] };
}

async function isBoundAlready(tx: Tx, node: Node, request: MachineBinding): Promise<boolean> {
  if (node.onboardingMode === "manual") return false;
  const systemId = await readMaasSystemId(tx, node.id);
  if (systemId === request.maas_system_id) return true;
  throw conflict(
    node,
    `is not of manual mode and ${systemId === null ? "has no machine" : `has the machine ${systemId}`}. Only a node of manual mode is bound to a machine.`,
  );
}

async function asNode(tx: Tx, node: Node): Promise<NodeToBind> {
  const sku = await readSku(tx, node.sku);
  const { id, hostname, status, gpusTotal } = node;
  return {
    id,
    hostname,
    status,
    gpusTotal,
    gpuVendor: sku?.gpuVendor ?? "none",
    host: await readSessionInventory(tx, node),
  };
}

function mustBeBindable(node: Node, { refusals }: BindingVerdict): void {
  const [first] = refusals;
  if (first === undefined) return;
  const errors = refusals.map(({ code, message }) => ({ pointer: "/maas_system_id", message: `${code}: ${message}` }));
  throw new ApiError("conflict", `Node ${node.hostname} was not bound: ${first.message}`, {
    errors,
    context: { node_id: node.id, node_status: node.status },
  });
}

async function write(
  tx: Tx,
  node: Node,
  adoption: Pick<NodeAdoption, "siteId" | "profileId" | "adoptedBy" | "differences">,
  machine: MaasMachineRow,
  { verdict, bmc }: { readonly verdict: BindingVerdict; readonly bmc: string },
): Promise<void> {
  const { systemId, owner } = machine;
  // When the node of manual mode came into service, the hub stored what its system contained, so Muster knows the past of the system since then.
  const past = { pastUnknown: false, wasManual: true };
  await insertBinding(tx, node.id, { ...adoption, ...past }, { systemId, owner, ipmiIp: normalAddress(bmc) });
  const message = `The agent runs on the host of machine ${systemId}.`;
  await writeOwnCondition(tx, node, { type: "adoption.identity", status: "True", reason: "SameHost", message });
  if (verdict.gpus !== null) await writeOwnCondition(tx, node, { type: "adoption.gpus", ...verdict.gpus });
  await recordNodeEvent(tx, {
    nodeId: node.id,
    type: "machine_bound",
    owner: "admin_api",
    message: `Bound to machine ${systemId} in MAAS; the node was of manual mode`,
  });
  await recordDomainEvent(tx, {
    type: "node.machine.bound",
    subject: `nodes/${node.id}`,
    data: {
      ...named(node, adoption.siteId, systemId),
      by: adoption.adoptedBy,
      differences: [...new Set(adoption.differences.map(({ kind }) => kind))],
    },
  });
  await inheritHealthOverrides(tx, {
    nodeId: node.id,
    siteId: adoption.siteId,
    maasSystemId: systemId,
    macAddresses: isReadInFull(machine.details) ? machine.details.macs : [],
  });
}

const named = (node: Node, siteId: SiteId, systemId: string) => ({
  node_id: node.id,
  hostname: node.hostname,
  site_id: siteId,
  maas_system_id: systemId,
});

/** Undoes `bindNode`: the node is of manual mode again, and Muster no longer watches its machine. Returns the system id of the machine. */
export async function unbindNode(tx: Tx, id: NodeId, reason: string, by: string): Promise<string> {
  const node = await mustLockNode(tx, id);
  const holder = await operationOfNode(tx, id);
  if (holder !== null) throw heldError(node, holder, "it cannot be unbound from its machine");
  const adoption = await readAdoption(tx, id);
  const systemId = await readMaasSystemId(tx, id);
  if (adoption === null || !adoption.wasManual || systemId === null)
    throw conflict(node, "was not bound by bind-node-machine, so it cannot be unbound. Remove the node instead.");
  if (await hasReleasedMachine(tx, id))
    throw conflict(node, `runs a system that Muster deployed on machine ${systemId}. Remove the node instead.`);
  if (node.status === "quarantined")
    throw conflict(node, "is quarantined. Lift the quarantine (lift-node-quarantine) first.");
  await deleteBinding(tx, adoption);
  for (const type of ["adoption.identity", "adoption.gpus"] as const) await removeConditions(tx, id, type);
  await recordNodeEvent(tx, {
    nodeId: id,
    type: "machine_unbound",
    owner: "admin_api",
    message: `No longer bound to machine ${systemId}: ${reason}`,
  });
  await recordDomainEvent(tx, {
    type: "node.machine.unbound",
    subject: `nodes/${id}`,
    data: { ...named(node, adoption.siteId, systemId), by, reason },
  });
  return systemId;
}
