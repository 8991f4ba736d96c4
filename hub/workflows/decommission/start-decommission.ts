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
import { type BatchId, type NodeId, WorkflowId } from "../../../shared/ids.ts";
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
import { readBaselineLacks } from "../../db/queries/node-baselines.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import { holdSubjects, onboardingOfHost, subjectOf } from "../../db/queries/workflow-subjects.ts";
import { insertWorkflows } from "../../db/queries/workflows.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { type BaselineLack, lacksNothing, toldLack } from "../../node/baseline-lack.ts";
import { moveNode } from "../../node/move-node.ts";
import { adoptEnding, mustNotTakeFromTenant } from "./allocated-node.ts";
import { firstStageOf } from "./decommission.ts";
import { KEEPS_STATUS } from "./keeps-status.ts";
import { MAY_BEGIN } from "./may-begin.ts";
import { holdOwnMachine, takeLeftMachine } from "./take-left-machine.ts";
import { staysDeployed } from "./uninstall-work.ts";

export type DecommissionRequest =
  | ({ readonly mode: "drain" } & DrainCreate)
  | ({ readonly mode: "remove" } & RemoveCreate)
  | ({ readonly mode: "release" } & ReleaseCreate)
  | ({ readonly mode: "storage_cleanup" } & StorageCleanupCreate)
  | DecommissionCreate;

export async function mustLockNode(tx: Tx, nodeId: NodeId): Promise<Node> {
  const node = await lockNode(tx, nodeId);
  if (node === null) throw new ApiError("not_found", `There is no node ${nodeId}.`);
  return node;
}

/** If `startDecommission` refuses the request, it throws an ApiError and writes nothing. */
export async function startDecommission(
  tx: Tx,
  nodeId: NodeId,
  request: DecommissionRequest,
  requestedBy: string,
  batchId: BatchId | null = null,
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
  await mustNotTakeFromTenant(tx, node, request, { actor: requestedBy, operation: id });
  const lack = mode === "storage_cleanup" || mode === "soft_reset" ? await readLack(tx, node.id) : [];
  if (mode === "storage_cleanup") mustHaveBaseline(node, lack);
  const removed = node.status === "deleted";
  const maasSystemId = removed ? await takeLeftMachine(tx, node, id) : await readMaasSystemId(tx, nodeId);
  if (isReleasing(mode)) await mustHaveMachine(tx, node, maasSystemId, mode);
  if (mode === "full_decommission" && maasSystemId !== null) await holdOwnMachine(tx, node, id, maasSystemId);
  const priorStatus = await priorStatusOf(tx, node, request.reason);
  const input = inputOf(nodeId, request);
  const stage = firstStageOf(mode);
  await insertWorkflows(tx, [{ id, kind: mode, siteId: node.siteId, batchId, stage, input, requestedBy }]);
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
  const warning = mode === "remove" ? await staysDeployed(tx, node, maasSystemId) : willNotBeClean(node, lack);
  return { decommission_id: id, node_id: nodeId, mode, status: "pending", warning };
}

const RELEASING = ["release", "reimage", "full_decommission"] as const satisfies readonly DecommissionMode[];
type Releasing = (typeof RELEASING)[number];
const isReleasing = (mode: DecommissionMode): mode is Releasing => (RELEASING as readonly string[]).includes(mode);

/**
 * Throws an ApiError if the node has no machine in MAAS that can be released. A node in manual mode has no machine in MAAS; another node may have
 * lost its binding to a machine.
 */
async function mustHaveMachine(tx: Tx, node: Node, maasSystemId: string | null, mode: Releasing): Promise<void> {
  const todo = mode === "reimage" ? "deployed again" : "released";
  const refuse = (why: string) =>
    new ApiError("conflict", `No machine can be ${todo} for node ${node.hostname}: ${why}`, {
      context: { node_id: node.id },
    });
  if (node.onboardingMode === "manual") throw refuse("it was installed by hand, so no MAAS manages it.");
  if (maasSystemId === null || !(await hasProfile(tx, node.id)))
    throw refuse("it is bound to no machine in MAAS. Find the machine there, or drain and remove the node.");
}

const readLack = async (tx: Tx, id: NodeId): Promise<BaselineLack> =>
  (await readBaselineLacks(tx, [id])).get(id) ?? null;

/**
 * Refuses a storage cleanup of a node without a complete baseline, because the cleanup's stage `validate_clean_node` could only quarantine the node.
 */
function mustHaveBaseline(node: Node, lack: BaselineLack): void {
  if (lacksNothing(lack)) return;
  throw new ApiError(
    "conflict",
    `Node ${node.hostname} has ${toldLack(lack)}, so no storage cleanup could show that its host is clean. Wait until the hub has taken the baseline (get-node-baseline), or use take-node-baseline.`,
    { context: { node_id: node.id } },
  );
}

/**
 * Warns that a soft reset cannot find the host clean. The soft reset begins in spite of the warning, because it removes the account and the data of a
 * tenant whose allocation has ended.
 */
const willNotBeClean = (node: Node, lack: BaselineLack): string | null =>
  lacksNothing(lack)
    ? null
    : `Node ${node.hostname} has ${toldLack(lack)}, so the soft reset cannot show that the host is clean, and ends with the node in quarantine. Reimage the node instead, or cancel and use take-node-baseline if no tenant left anything.`;

/**
 * Returns the node's status that a cancel of the decommission restores. If an earlier drain left the node `draining`, the prior status is the status
 * before the earlier drain, for example `quarantined`.
 */
async function priorStatusOf(tx: Tx, node: Node, reason: string): Promise<NodeStatus> {
  if (node.status === "enrolling") return leaveEnrolling(tx, node, reason);
  if (node.status === "bootstrap_issued") return giveUpWaiting(tx, node, reason);
  if (node.status !== "draining") return node.status;
  return (await readPriorStatus(tx, node.id)) ?? node.status;
}

/**
 * A failed onboarding owns its node until an operator cancels the onboarding, so `leaveEnrolling` refuses the drain. An `enrolling` node without an
 * onboarding becomes `quarantined`, from which a drain can begin.
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

/** Retires a node whose host never enrolled, and makes the node's bootstrap command invalid. */
async function giveUpWaiting(tx: Tx, node: Node, reason: string): Promise<NodeStatus> {
  await revokeEnrollmentTokens(tx, node.id);
  await moveNode(tx, node.id, { from: "bootstrap_issued", to: "retired", owner: "operator" }, reason);
  return "retired";
}

const inputOf = (nodeId: NodeId, request: DecommissionRequest) => ({
  node_id: nodeId,
  ...(request.mode === "release" ? {} : { agent_wait_seconds: request.agent_wait_seconds }),
  ...(request.mode === "drain" ? { deadline_seconds: request.deadline_seconds, force: request.force } : {}),
  // A full decommission or a mode in `KEEPS_STATUS` ends all user sessions at once, because no tenant has a right to the node any more.
  ...(KEEPS_STATUS[request.mode] || request.mode === "full_decommission" ? { force: true } : {}),
  ...(request.mode === "soft_reset" ? { storage_cleanup: request.storage_cleanup } : {}),
  ...(request.mode === "storage_cleanup"
    ? { storage_cleanup: request.scope, purge_disks: request.purge_disks ?? [] }
    : {}),
  ...(request.mode === "reimage" ? { erase: request.erase } : {}),
  ...(request.mode === "full_decommission"
    ? {
        erase: request.erase,
        storage_cleanup: request.storage_cleanup,
        remove_maas_record: request.remove_maas_record,
        force_release_allocation: request.force_release_allocation ?? false,
      }
    : {}),
});

/** A reimage or full decommission also holds the host's name and BMC, so that no onboarding begins on the host. */
async function subjectsOf(tx: Tx, node: Node, mode: DecommissionMode): Promise<string[]> {
  const own = [subjectOf.node(node.id)];
  const bmc = mode === "reimage" || mode === "full_decommission" ? await readBmcAddress(tx, node.id) : null;
  if (bmc === null || node.siteId === null) return own;
  return [...own, subjectOf.host(node.siteId, node.hostname), subjectOf.bmc(node.siteId, bmc)];
}

/** A failed operation still holds its node, because an operator can resume the operation. */
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
