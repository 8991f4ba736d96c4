import { randomUUID } from "node:crypto";
import type {
  DecommissionCreate,
  DecommissionCreated,
  DrainCreate,
  ReleaseCreate,
  RemoveCreate,
  StorageCleanupCreate,
} from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { type NodeId, WorkflowId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";
import {
  hasProfile,
  insertDecommission,
  readBmcAddress,
  readMaasSystemId,
  readPriorStatus,
} from "../../db/queries/decommissions.ts";
import { revokeEnrollmentTokens } from "../../db/queries/enrollment-tokens.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import { holdSubjects, onboardingOfHost, subjectOf } from "../../db/queries/workflow-subjects.ts";
import { insertWorkflows } from "../../db/queries/workflows.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { moveNode } from "../../node/move-node.ts";
import { adoptEnding, mustNotTakeFromTenant } from "./allocated-node.ts";
import { firstStageOf } from "./decommission.ts";
import { KEEPS_STATUS } from "./keeps-status.ts";
import { takeLeftMachine } from "./take-left-machine.ts";
import { staysDeployed } from "./uninstall-work.ts";

export type DecommissionRequest =
  | ({ readonly mode: "drain" } & DrainCreate)
  | ({ readonly mode: "remove" } & RemoveCreate)
  | ({ readonly mode: "release" } & ReleaseCreate)
  | ({ readonly mode: "storage_cleanup" } & StorageCleanupCreate)
  | DecommissionCreate;

const CLEANED_IN_SERVICE: Readonly<Record<NodeStatus, true | string>> = {
  bootstrap_issued: "Its host has not enrolled, so no agent can clean it.",
  enrolling: "It is not in service yet: wait until it is active.",
  active: true,
  offline: true,
  quarantined: true,
  draining: "It is being drained: wait until it is retired, then activate it, or cancel the drain.",
  retired: "It is out of service: activate it first.",
  removing: "It is being removed.",
  deleted: "A deleted node is never used again.",
};

/**
 * The table that says in which node status each mode of a decommission may begin. A text in `MAY_BEGIN` says why the hub refuses a mode in this
 * status, and what the operator does next. A new operation may take over a node that an earlier operation left `draining` or `removing`, if no
 * operation holds the node. A drain may also take over an `enrolling` node without an onboarding (`leaveEnrolling`). A `remove` of a node whose host
 * never enrolled is complete at once.
 */
const MAY_BEGIN: Readonly<Record<DecommissionMode, Readonly<Record<NodeStatus, true | string>>>> = {
  drain: {
    bootstrap_issued: "Its host has not enrolled, so there is nothing to drain: remove it.",
    enrolling: true,
    active: true,
    offline: true,
    quarantined: true,
    draining: true,
    retired: "It is drained already: remove it, or activate it.",
    removing: "It is being removed.",
    deleted: "A deleted node is never used again.",
  },
  remove: {
    bootstrap_issued: true,
    enrolling: "Only a retired node is removed: cancel its onboarding, and drain the node that it leaves.",
    active: "Only a retired node is removed: drain it first.",
    offline: "Only a retired node is removed: drain it first.",
    quarantined: "Only a retired node is removed: drain it first.",
    draining: "Only a retired node is removed: wait until it is drained.",
    retired: true,
    removing: true,
    deleted: "It is removed already.",
  },
  release: {
    bootstrap_issued: "It is no machine in MAAS.",
    enrolling:
      "Only the machine of a retired node is released: cancel its onboarding, and drain the node that it leaves.",
    active: "Only the machine of a retired node is released: drain it first.",
    offline: "Only the machine of a retired node is released: drain it first.",
    quarantined: "Only the machine of a retired node is released: drain it first.",
    draining: "Only the machine of a retired node is released: wait until it is drained.",
    retired: true,
    removing: "It is being removed.",
    // The machine of a deleted node may be released, so that the host can be onboarded again.
    deleted: true,
  },
  soft_reset: CLEANED_IN_SERVICE,
  reimage: CLEANED_IN_SERVICE,
  storage_cleanup: CLEANED_IN_SERVICE,
};

/** Locks the node's row and returns the node. Throws `not_found` if the node does not exist. */
export async function mustLockNode(tx: Tx, nodeId: NodeId): Promise<Node> {
  const node = await lockNode(tx, nodeId);
  if (node === null) throw new ApiError("not_found", `There is no node ${nodeId}.`);
  return node;
}

/** Accepts an operation on a node (lifecycle 5.7). If `startDecommission` refuses the request, it throws ApiError and writes nothing. */
export async function startDecommission(
  tx: Tx,
  nodeId: NodeId,
  request: DecommissionRequest,
  requestedBy: string,
): Promise<DecommissionCreated> {
  const node = await mustLockNode(tx, nodeId);
  const { mode } = request;
  const id = WorkflowId.parse(randomUUID());
  await holdNode(tx, node, id, mode);
  const may = MAY_BEGIN[mode][node.status];
  if (may !== true) {
    const message = `Node ${node.hostname} is ${node.status}, so no ${mode} can begin. ${may}`;
    throw new ApiError("conflict", message, { context: { node_id: nodeId, node_status: node.status } });
  }
  await mustNotTakeFromTenant(tx, node, request, requestedBy);
  const removed = node.status === "deleted";
  const maasSystemId = removed ? await takeLeftMachine(tx, node, id) : await readMaasSystemId(tx, nodeId);
  if (mode === "release" || mode === "reimage") await mustHaveMachine(tx, node, maasSystemId, mode);
  const priorStatus = await priorStatusOf(tx, node, request.reason);
  const input = inputOf(nodeId, request);
  await insertWorkflows(tx, [{ id, kind: mode, siteId: node.siteId, stage: firstStageOf(mode), input, requestedBy }]);
  await insertDecommission(tx, {
    decommissionId: id,
    nodeId,
    siteId: node.siteId,
    hostname: node.hostname,
    maasSystemId,
    mode,
    reason: request.reason,
    priorStatus,
    priorQuarantinedBy: node.quarantinedBy,
  });
  if (mode === "soft_reset" || mode === "reimage") await adoptEnding(tx, node, id);
  const warning = mode === "remove" ? await staysDeployed(tx, node, maasSystemId) : null;
  return { decommission_id: id, node_id: nodeId, mode, status: "pending", warning };
}

/**
 * Throws ApiError if the node has no machine in MAAS that can be released. A node whose host was installed by hand (manual mode) has no machine in
 * MAAS; another node may have lost its binding to a machine.
 */
async function mustHaveMachine(
  tx: Tx,
  node: Node,
  maasSystemId: string | null,
  mode: "release" | "reimage",
): Promise<void> {
  const todo = mode === "release" ? "released" : "deployed again";
  const refuse = (why: string) =>
    new ApiError("conflict", `No machine can be ${todo} for node ${node.hostname}: ${why}`, {
      context: { node_id: node.id },
    });
  if (node.onboardingMode === "manual") throw refuse("it was installed by hand, so no MAAS manages it.");
  if (maasSystemId === null || !(await hasProfile(tx, node.id)))
    throw refuse("it is bound to no machine in MAAS. Find the machine there, or drain and remove the node.");
}

/**
 * Returns the status that the node has without the operation; a cancel restores this status. If an earlier drain left the node `draining`, the result
 * is the status before the earlier drain, for example `quarantined`.
 */
async function priorStatusOf(tx: Tx, node: Node, reason: string): Promise<NodeStatus> {
  if (node.status === "enrolling") return leaveEnrolling(tx, node, reason);
  if (node.status === "bootstrap_issued") return giveUpWaiting(tx, node, reason);
  if (node.status !== "draining") return node.status;
  return (await readPriorStatus(tx, node.id)) ?? node.status;
}

/**
 * Refuses a drain while an onboarding owns the node. A failed onboarding owns its node until an operator cancels the onboarding. If no onboarding
 * owns the `enrolling` node, the node becomes `quarantined`, from which a drain can begin.
 */
async function leaveEnrolling(tx: Tx, node: Node, reason: string): Promise<NodeStatus> {
  const onboarding = node.siteId === null ? null : await onboardingOfHost(tx, node.siteId, node.hostname);
  if (onboarding !== null) {
    throw new ApiError(
      "conflict",
      `Node ${node.hostname} is being onboarded, so no drain can begin. Wait until it is active, or cancel onboarding ${onboarding}.`,
      { context: { node_id: node.id, node_status: node.status, onboarding_id: onboarding } },
    );
  }
  await moveNode(tx, node.id, { from: "enrolling", to: "quarantined", owner: "operator" }, reason);
  return "quarantined";
}

/** Retires a node whose host never enrolled. The bootstrap command of a retired node becomes invalid. */
async function giveUpWaiting(tx: Tx, node: Node, reason: string): Promise<NodeStatus> {
  await revokeEnrollmentTokens(tx, node.id);
  await moveNode(tx, node.id, { from: "bootstrap_issued", to: "retired", owner: "operator" }, reason);
  return "retired";
}

const inputOf = (nodeId: NodeId, request: DecommissionRequest) => ({
  node_id: nodeId,
  ...(request.mode === "release" ? {} : { agent_wait_seconds: request.agent_wait_seconds }),
  ...(request.mode === "drain" ? { deadline_seconds: request.deadline_seconds, force: request.force } : {}),
  // When a cleaning of the node begins, no tenant uses the node any more, so the drain ends all user sessions at once.
  ...(KEEPS_STATUS[request.mode] ? { force: true } : {}),
  ...(request.mode === "soft_reset" ? { storage_cleanup: request.storage_cleanup } : {}),
  ...(request.mode === "storage_cleanup" ? { storage_cleanup: request.scope } : {}),
  ...(request.mode === "reimage" ? { erase: request.erase } : {}),
});

/**
 * The subjects that an operation holds. A reimage provisions its host, so it also holds the host's name and BMC, as an onboarding of the host does.
 * During a reimage, no onboarding can begin on the host.
 */
async function subjectsOf(tx: Tx, node: Node, mode: DecommissionMode): Promise<string[]> {
  const own = [subjectOf.node(node.id)];
  const bmc = mode === "reimage" ? await readBmcAddress(tx, node.id) : null;
  if (bmc === null || node.siteId === null) return own;
  return [...own, subjectOf.host(node.siteId, node.hostname), subjectOf.bmc(node.siteId, bmc)];
}

/**
 * Holds the node for the operation, because a node has at most one operation. A failed operation still holds its node, because an operator can resume
 * the operation.
 */
async function holdNode(tx: Tx, node: Node, id: WorkflowId, mode: DecommissionMode): Promise<void> {
  const holder = await holdSubjects(tx, id, await subjectsOf(tx, node, mode));
  if (holder !== null) throw heldError(node, holder, `no ${mode} can begin`);
}

export const heldError = (node: Pick<Node, "id" | "hostname">, holder: WorkflowId, so: string): ApiError =>
  new ApiError(
    "operation_exists",
    `Decommission ${holder} holds node ${node.hostname}, so ${so}. Wait for it, or recover or cancel it.`,
    { context: { decommission_id: holder, node_id: node.id } },
  );
