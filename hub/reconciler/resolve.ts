import { ApiError } from "../../shared/api/errors.ts";
import type { DriftResolve } from "../../shared/api/reconciliation.ts";
import type { DriftDetails } from "../../shared/drift.ts";
import type { NodeId } from "../../shared/ids.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { lockDriftStates } from "../db/queries/drift.ts";
import { readObservedMachine } from "../db/queries/maas-machines.ts";
import { writeDrift } from "../db/queries/node-machines.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { MaasMachineRow, Node, NodeMaasState } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { moveNode } from "../node/move-node.ts";
import { type Person, recordDriftEnd } from "./drift-history.ts";

export interface Resolution {
  readonly prior: { readonly status: NodeStatus; readonly drift: DriftDetails | null };
  readonly status: NodeStatus;
}

/** A person resolves a drift (lifecycle 6.6). If `resolveDrift` throws an ApiError, it has written nothing. */
export async function resolveDrift(
  tx: Tx,
  nodeId: NodeId,
  { action, reason }: DriftResolve,
  by: string,
  now: Date,
): Promise<Resolution> {
  const node = await lockNode(tx, nodeId);
  const record = (await lockDriftStates(tx, [nodeId])).get(nodeId);
  if (node === null || record === undefined)
    throw new ApiError("not_found", `There is no node ${nodeId} that is a machine of a MAAS site.`);
  const details = record.driftDetected ? record.driftDetails : null;
  const prior = { status: node.status, drift: details };
  if (action === "acknowledge") {
    if (details === null)
      throw conflict(node, "has no drift to acknowledge: it is over, or acknowledged already; read its drift again");
    await acknowledge(tx, node, record, details, { by, reason, now });
    return { prior, status: node.status };
  }
  if ((await operationOfNode(tx, nodeId)) !== null)
    throw conflict(node, "is held by an operation; wait for it, or cancel it");
  await returnToService(tx, node, record, { by, reason });
  return { prior, status: "active" };
}

async function acknowledge(
  tx: Tx,
  node: Node,
  record: NodeMaasState,
  details: DriftDetails,
  { by, reason, now }: { by: string; reason: string; now: Date },
): Promise<void> {
  const { rule, maas_status_code } = details;
  await writeDrift(tx, node.id, {
    driftDetected: false,
    driftAcknowledged: { rule, maas_status_code, by, at: now.toISOString(), reason },
    resolved: true,
  });
  await tellResolved(tx, node, record, rule, { how: "acknowledged", by, reason });
}

/** The advice for an operator who tries to return a node to service although the node is not quarantined. */
const INSTEAD: Readonly<Record<Exclude<NodeStatus, "quarantined">, string>> = {
  bootstrap_issued: "wait until its host has enrolled",
  enrolling: "wait until its onboarding is over",
  active: "acknowledge its drift if that is known",
  offline: "look at its host, and bring its agent back",
  draining: "wait until it is drained, then activate it",
  retired: "activate it",
  removing: "onboard the host again once it is removed",
  deleted: "onboard the host again",
};

/**
 * Returns a quarantined node to service, but only if its machine is deployed in MAAS. A person can vouch for a host, but not for a machine that is
 * not deployed in MAAS.
 */
async function returnToService(tx: Tx, node: Node, record: NodeMaasState, person: Person): Promise<void> {
  if (node.status !== "quarantined")
    throw conflict(
      node,
      `is ${node.status}, and only a quarantined node is returned to service; ${INSTEAD[node.status]}`,
    );
  if (record.quarantinedAt === null)
    throw conflict(
      node,
      "was not quarantined because of drift, so resolving drift does not end its quarantine; lift the quarantine instead",
    );
  await vouchFor(tx, node, record, person);
}

/** Ends a quarantine, whoever caused it, because a person vouches for the node. `vouchFor` also clears the stored drift of the node. */
export async function vouchFor(tx: Tx, node: Node, record: NodeMaasState, person: Person): Promise<void> {
  const machine = await readObservedMachine(tx, record.siteId, record.maasSystemId);
  if (!isDeployed(machine)) {
    const is = machine === null || machine.absent ? "gone from MAAS" : `'${machine.statusName}' in MAAS`;
    throw conflict(
      node,
      `cannot be returned to service: its machine ${record.maasSystemId} is ${is}. Ask again once it is Deployed; where the system on it is lost, drain and remove the node, then onboard the host again`,
    );
  }
  await moveNode(tx, node.id, { from: "quarantined", to: "active", owner: "operator" }, person.reason);
  await writeDrift(tx, node.id, {
    driftDetected: false,
    driftAcknowledged: null,
    quarantined: false,
    // The machine's present owner becomes the recorded owner, because the person vouches for the machine as it is.
    maasOwner: null,
    ...(record.driftDetected ? { resolved: true } : {}),
  });
  if (record.driftDetected && record.driftDetails !== null)
    await tellResolved(tx, node, record, record.driftDetails.rule, { how: "returned_to_service", ...person });
}

const isDeployed = (machine: MaasMachineRow | null): boolean =>
  machine !== null && !machine.absent && machine.status === MAAS_STATUS.deployed;

async function tellResolved(
  tx: Tx,
  node: Node,
  { siteId }: NodeMaasState,
  rule: DriftDetails["rule"],
  { how, ...person }: Person & { readonly how: "acknowledged" | "returned_to_service" },
): Promise<void> {
  await recordDriftEnd(tx, node.id, rule, { how, person });
  await recordDomainEvent(tx, {
    type: "node.drift.resolved",
    subject: `nodes/${node.id}`,
    data: { node_id: node.id, hostname: node.hostname, site_id: siteId, rule, how },
  });
}

export const conflict = (node: Node, why: string): ApiError =>
  new ApiError("conflict", `Node ${node.hostname} ${why}.`, {
    context: { node_id: node.id, node_status: node.status },
  });
