import { z } from "zod";
import { Reason } from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { NodeId } from "../../../shared/ids.ts";
import { NodeStatus } from "../../../shared/node-status.ts";
import { closedHosts } from "../../db/queries/closed-hosts.ts";
import { isHostReleased } from "../../db/queries/machine-releases.ts";
import { hasEnrolled, revokeCertificates } from "../../db/queries/node-certificates.ts";
import { operationOfNode } from "../../db/queries/workflow-subjects.ts";
import type { Node } from "../../db/schema/index.ts";
import { clearReports } from "../../node/clear-reports.ts";
import { cordonForOperator, isOperations, uncordonForOperator } from "../../node/cordon.ts";
import { activate } from "../../node/lifecycle.ts";
import { openHost } from "../../node/open-host.ts";
import { liftQuarantine, type Moved, quarantineNode } from "../../reconciler/operator-quarantine.ts";
import { heldError, mustLockNode } from "../../workflows/decommission/start-decommission.ts";
import { writeRoute } from "../route.ts";

const NodeParams = z.strictObject({ id: NodeId });
const NodeState = z.strictObject({ node_id: NodeId, status: NodeStatus });
const NodeCordon = z.strictObject({
  node_id: NodeId,
  cordon_reason: z.string().nullable(),
  cordon_owner: z.string().nullable(),
});
const ReportsCleared = z.strictObject({ node_id: NodeId, conditions: z.int(), signals: z.int() });
const path = "/api/v1/admin/nodes/{id}";
/**
 * The properties that all routes for an operator's action on one node share, for example the method and the right. Every request for an action on a
 * node must name a reason.
 */
const operation = {
  method: "POST",
  tag: "nodes",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: NodeParams,
  body: z.strictObject({ reason: Reason }),
  status: 200,
} as const;

const activateNode = writeRoute({
  ...operation,
  operationId: "activateNode",
  path: `${path}/activate`,
  summary: "Put a retired node into service again",
  response: NodeState,
  write: async ({ params, body }, tx) => {
    const node = await mustLockNode(tx, params.id);
    const holder = await operationOfNode(tx, node.id);
    if (holder !== null) throw heldError(node, holder, "it cannot be activated");
    if (node.status === "retired" && (await isHostReleased(tx, node))) {
      const message = `Node ${node.hostname} cannot be activated: its machine was released in MAAS, so its host is gone. Remove the node, then onboard the host again.`;
      throw new ApiError("conflict", message, { context: { node_id: node.id, node_status: node.status } });
    }
    if (
      node.status === "retired" &&
      node.onboardingMode !== "maas" &&
      node.runsAgent &&
      !(await hasEnrolled(tx, node.id))
    ) {
      const message = `Node ${node.hostname} cannot be activated: its host never enrolled. Remove the node, and create it again when its host is to be installed.`;
      throw new ApiError("conflict", message, { context: { node_id: node.id, node_status: node.status } });
    }
    const step = await activate(tx, node.id, body.reason);
    if (step.kind === "refused") {
      const message = `Node ${node.hostname} is ${node.status}; only a retired node is activated.`;
      throw new ApiError("conflict", message, { context: { node_id: node.id, node_status: node.status } });
    }
    // The host of an active node may still refuse users' logins, because the node's last undrain task failed. If an operator activates a node that is
    // already active, the hub repeats a failed undrain task.
    const closed = await closedHosts(tx, [node.id]);
    if (step.kind === "moved" || closed.has(node.id)) await openHost(tx, { nodeId: node.id, reason: body.reason });
    return {
      body: { node_id: node.id, status: step.status },
      audit: {
        target: `nodes/${node.id}`,
        reason: body.reason,
        details: { prior: { status: node.status }, expected: { status: "active" } },
      },
    };
  },
});

const revokeNodeCertificates = writeRoute({
  ...operation,
  operationId: "revokeNodeCertificates",
  path: `${path}/revoke-certificates`,
  summary: "Void a node's identity: its agent is disconnected until the node is enrolled or onboarded again",
  response: NodeState,
  write: async ({ params, body }, tx) => {
    const node = await mustLockNode(tx, params.id);
    const revoked = await revokeCertificates(tx, node.id, "all", body.reason);
    const of = (valid_certificates: number) => ({ status: node.status, valid_certificates });
    return {
      body: { node_id: node.id, status: node.status },
      audit: {
        target: `nodes/${node.id}`,
        reason: body.reason,
        details: { prior: of(revoked), expected: of(0) },
      },
    };
  },
});

const quarantine = writeRoute({
  ...operation,
  operationId: "quarantineNode",
  path: `${path}/quarantine`,
  summary: "Take a node out of service until a person puts it back",
  response: NodeState,
  write: async ({ params, body: { reason } }, tx) =>
    told(params.id, reason, await quarantineNode(tx, params.id, reason)),
});

const lift = writeRoute({
  ...operation,
  operationId: "liftNodeQuarantine",
  path: `${path}/lift-quarantine`,
  summary: "Put a quarantined node into service again, whoever quarantined it",
  response: NodeState,
  write: async ({ params, body: { reason }, actor }, tx) =>
    told(params.id, reason, await liftQuarantine(tx, params.id, { by: actor.name, reason })),
});

const told = (id: NodeId, reason: string, { prior, status }: Moved) => ({
  body: { node_id: id, status },
  audit: { target: `nodes/${id}`, reason, details: { prior: { status: prior }, expected: { status } } },
});

const cordon = writeRoute({
  ...operation,
  operationId: "cordonNode",
  path: `${path}/cordon`,
  summary: "Keep new work off a node without a change of its running work",
  response: NodeCordon,
  write: async ({ params, body: { reason }, actor }, tx) => {
    const node = await mustLockNode(tx, params.id);
    if (node.status === "removing" || node.status === "deleted")
      throw new ApiError("conflict", `Node ${node.hostname} is ${node.status}, so it gets no new work anyway.`, {
        context: { node_id: node.id, node_status: node.status },
      });
    await cordonForOperator(tx, node.id, actor.name, reason);
    return cordonTold(node, await mustLockNode(tx, node.id), reason);
  },
});

const uncordon = writeRoute({
  ...operation,
  operationId: "uncordonNode",
  path: `${path}/uncordon`,
  summary: "Lift a person's cordon, so that the node takes new work again",
  response: NodeCordon,
  write: async ({ params, body: { reason }, actor }, tx) => {
    const node = await mustLockNode(tx, params.id);
    if (isOperations(node.cordonOwner))
      throw new ApiError(
        "conflict",
        `Node ${node.hostname} is cordoned by ${node.cordonOwner?.replace(":", " ")}, which lifts the cordon itself. Cancel the operation, or activate the node once it is retired.`,
        { context: { node_id: node.id, node_status: node.status } },
      );
    await uncordonForOperator(tx, node.id, actor.name, reason);
    return cordonTold(node, await mustLockNode(tx, node.id), reason);
  },
});

const cordonOf = ({ cordonReason, cordonOwner }: Node) => ({ cordon_reason: cordonReason, cordon_owner: cordonOwner });
const cordonTold = (prior: Node, now: Node, reason: string) => ({
  body: { node_id: now.id, ...cordonOf(now) },
  audit: { target: `nodes/${now.id}`, reason, details: { prior: cordonOf(prior), expected: cordonOf(now) } },
});

const clearNodeReports = writeRoute({
  ...operation,
  operationId: "clearNodeReports",
  path: `${path}/clear-reports`,
  summary: "Remove reports about a node: conditions of types that Muster does not know, readiness signals, agent.noisy",
  response: ReportsCleared,
  write: async ({ params, body }, tx) => {
    const node = await mustLockNode(tx, params.id);
    const cleared = await clearReports(tx, node.id, body.reason);
    return {
      body: { node_id: node.id, ...cleared },
      audit: { target: `nodes/${node.id}`, reason: body.reason, details: cleared },
    };
  },
});

/** The verbs that a person can also apply to many nodes at once. */
export const nodeVerbs = { activate: activateNode, quarantine, lift_quarantine: lift, cordon, uncordon };

export const nodeOperationRoutes = [
  activateNode,
  revokeNodeCertificates,
  quarantine,
  lift,
  cordon,
  uncordon,
  clearNodeReports,
];
