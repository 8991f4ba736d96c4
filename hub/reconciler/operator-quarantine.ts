import type { NodeId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { lockDriftStates, writeDrift } from "../db/queries/drift.ts";
import { onboardingOfHost } from "../db/queries/host-holds.ts";
import { isHostReleased } from "../db/queries/machine-releases.ts";
import { hasLiveCertificate } from "../db/queries/node-certificates.ts";
import { disownQuarantine } from "../db/queries/node-identity-bars.ts";
import type { Tx } from "../db/tx.ts";
import { moveNode } from "../node/move-node.ts";
import { heldError, holderOf, mustLockNode } from "../workflows/decommission/start-decommission.ts";
import { conflict, vouchFor } from "./resolve.ts";

/** What a person's word made of a node; `prior` is what it was. */
export interface Moved {
  readonly prior: NodeStatus;
  readonly status: NodeStatus;
}

/** What to do with a node that cannot be quarantined. */
const INSTEAD: Readonly<Partial<Record<NodeStatus, string>>> = {
  bootstrap_issued: "it is not in service yet; remove it, if its host is not to come",
  enrolling: "it is not in service yet; cancel its onboarding",
  draining: "no work is put on it; wait until it is drained, or cancel the drain",
  retired: "no work is put on it until somebody activates it",
  removing: "it is being removed",
  deleted: "it was deleted",
};

/**
 * Takes a node out of service by a person's word (state model 3.2). One that the system has quarantined already is a person's from then on, so that only a
 * person lifts it (decision N4). Throws ApiError; nothing is written then.
 */
export async function quarantineNode(tx: Tx, nodeId: NodeId, reason: string): Promise<Moved> {
  const node = await mustLockNode(tx, nodeId);
  const holder = await holderOf(tx, nodeId);
  if (holder !== null) throw heldError(node, holder, "it cannot be quarantined");
  const { status } = node;
  if (status !== "active" && status !== "offline" && status !== "quarantined")
    throw conflict(node, `is ${status} and cannot be quarantined: ${INSTEAD[status]}`);
  if (status !== "quarantined")
    await moveNode(tx, nodeId, { from: status, to: "quarantined", owner: "operator" }, reason);
  await lockDriftStates(tx, [nodeId]);
  await writeDrift(tx, nodeId, { quarantined: false });
  await disownQuarantine(tx, nodeId);
  return { prior: status, status: "quarantined" };
}

/**
 * Puts a quarantined node into service by a person's word, whoever quarantined it (decision N4). A person may vouch for a host, not for an identity that
 * is void or for a machine that MAAS says is something else. Throws ApiError; nothing is written then.
 */
export async function liftQuarantine(tx: Tx, nodeId: NodeId, reason: string): Promise<Moved> {
  const node = await mustLockNode(tx, nodeId);
  const { status: prior } = node;
  if (prior === "active" || prior === "offline") return { prior, status: prior };
  if (prior !== "quarantined") throw conflict(node, `is ${prior}, so there is no quarantine to lift`);
  const holder = await holderOf(tx, nodeId);
  if (holder !== null) throw heldError(node, holder, "its quarantine cannot be lifted");
  const onboarding = node.siteId === null ? null : await onboardingOfHost(tx, node.siteId, node.hostname);
  if (onboarding !== null)
    throw conflict(node, `is what onboarding ${onboarding} left in the middle: recover or cancel that instead`);
  if (await isHostReleased(tx, node))
    throw conflict(
      node,
      "cannot be put into service: its machine was released in MAAS, so its host is gone. Drain and remove it",
    );
  if (!(await hasLiveCertificate(tx, nodeId, node.generation)))
    throw conflict(
      node,
      "cannot be put into service: its identity is void, so no agent of it can connect. Re-enroll it (re-enroll-node), or drain and remove it and onboard the host again",
    );
  const record = (await lockDriftStates(tx, [nodeId])).get(nodeId);
  if (record === undefined)
    await moveNode(tx, nodeId, { from: "quarantined", to: "active", owner: "operator" }, reason);
  else await vouchFor(tx, node, record, reason);
  await disownQuarantine(tx, nodeId);
  return { prior, status: "active" };
}
