import type { NodeId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { lockOpenAllocation } from "../db/queries/allocations.ts";
import { lockDriftStates } from "../db/queries/drift.ts";
import { isHostReleased } from "../db/queries/machine-releases.ts";
import { hasLiveCertificate } from "../db/queries/node-certificates.ts";
import { disownQuarantine } from "../db/queries/node-identity-bars.ts";
import { writeDrift } from "../db/queries/node-machines.ts";
import { ownQuarantine } from "../db/queries/nodes.ts";
import { onboardingOfHost, operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { Tx } from "../db/tx.ts";
import { moveNode } from "../node/move-node.ts";
import { heldError, mustLockNode } from "../workflows/decommission/start-decommission.ts";
import type { Person } from "./drift-history.ts";
import { conflict, vouchFor } from "./resolve.ts";

/** `prior` is the node's status before the operator quarantined the node or lifted the quarantine. */
export interface Moved {
  readonly prior: NodeStatus;
  readonly status: NodeStatus;
}

/** The advice for an operator who tries to quarantine a node whose status does not allow a quarantine. */
const INSTEAD: Readonly<Partial<Record<NodeStatus, string>>> = {
  bootstrap_issued: "it is not in service yet; remove it if its host will not be installed",
  enrolling: "it is not in service yet; cancel its onboarding",
  draining: "no work is put on it; wait until it is drained, or cancel the drain",
  retired: "no work is put on it until somebody activates it",
  removing: "it is being removed",
  deleted: "it was deleted",
};

/**
 * Quarantines a node because a person asked for it (state model 3.2). If Muster itself had already quarantined the node, the quarantine becomes the
 * person's, and only a person can lift the quarantine (decision N4). If `quarantineNode` throws an ApiError, it has written nothing.
 */
export async function quarantineNode(tx: Tx, nodeId: NodeId, reason: string): Promise<Moved> {
  const node = await mustLockNode(tx, nodeId);
  const holder = await operationOfNode(tx, nodeId);
  if (holder !== null) throw heldError(node, holder, "it cannot be quarantined");
  const { status } = node;
  if (status !== "active" && status !== "offline" && status !== "quarantined")
    throw conflict(node, `is ${status} and cannot be quarantined: ${INSTEAD[status]}`);
  if (status !== "quarantined")
    await moveNode(tx, nodeId, { from: status, to: "quarantined", owner: "operator" }, reason);
  await ownQuarantine(tx, nodeId);
  await lockDriftStates(tx, [nodeId]);
  await writeDrift(tx, nodeId, { quarantined: false });
  await disownQuarantine(tx, nodeId);
  return { prior: status, status: "quarantined" };
}

/**
 * Returns a quarantined node to service because a person asked for it, whoever quarantined the node (decision N4). A person can vouch for a host,
 * unless the identity of its agent is invalid or its machine is not deployed in MAAS. If `liftQuarantine` throws an ApiError, it has written nothing.
 */
export async function liftQuarantine(tx: Tx, nodeId: NodeId, { by, reason }: Person): Promise<Moved> {
  const node = await mustLockNode(tx, nodeId);
  const { status: prior } = node;
  if (prior === "active" || prior === "offline") return { prior, status: prior };
  if (prior !== "quarantined") throw conflict(node, `is ${prior}, so there is no quarantine to lift`);
  const holder = await operationOfNode(tx, nodeId);
  if (holder !== null) throw heldError(node, holder, "its quarantine cannot be lifted");
  const onboarding = node.siteId === null ? null : await onboardingOfHost(tx, node.siteId, node.hostname);
  if (onboarding !== null)
    throw conflict(
      node,
      `belongs to the unfinished onboarding ${onboarding}: recover or cancel that onboarding instead`,
    );
  if (await isHostReleased(tx, node))
    throw conflict(
      node,
      `cannot be put into service: its machine was released in MAAS, so its host is gone. ${(await lockOpenAllocation(tx, nodeId)) === null ? "Drain and remove it" : "Reinstall its instance, or release the instance"}`,
    );
  if (node.runsAgent && !(await hasLiveCertificate(tx, nodeId, node.generation)))
    throw conflict(
      node,
      "cannot be put into service: its certificates are invalid, so its agent cannot connect. Re-enroll it (re-enroll-node), or drain and remove it and onboard the host again",
    );
  const record = (await lockDriftStates(tx, [nodeId])).get(nodeId);
  if (record === undefined)
    await moveNode(tx, nodeId, { from: "quarantined", to: "active", owner: "operator" }, reason);
  else await vouchFor(tx, node, record, { by, reason });
  await disownQuarantine(tx, nodeId);
  return { prior, status: "active" };
}
