import { z } from "zod";
import { Reason } from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { NodeId } from "../../../shared/ids.ts";
import { NodeStatus } from "../../../shared/node-status.ts";
import { closedHosts } from "../../db/queries/closed-hosts.ts";
import { isHostReleased } from "../../db/queries/machine-releases.ts";
import { revokeCertificates } from "../../db/queries/node-certificates.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { activate } from "../../node/lifecycle.ts";
import { openHost } from "../../tasks/open-host.ts";
import { heldError, holderOf } from "../../workflows/start-decommission.ts";
import { writeRoute } from "../route.ts";

const NodeParams = z.strictObject({ id: NodeId });
const NodeState = z.strictObject({ node_id: NodeId, status: NodeStatus });
const path = "/api/v1/admin/nodes/{id}";
const tag = "nodes";

async function lockedNode(tx: Tx, id: NodeId): Promise<Node> {
  const node = await lockNode(tx, id);
  if (node === null) throw new ApiError("not_found", `There is no node ${id}.`);
  return node;
}

const activateNode = writeRoute({
  operationId: "activateNode",
  method: "POST",
  path: `${path}/activate`,
  tag,
  summary: "Put a retired node into service again",
  permission: "write",
  params: NodeParams,
  body: z.strictObject({ reason: Reason }),
  status: 200,
  response: NodeState,
  write: async ({ params, body }, tx) => {
    const node = await lockedNode(tx, params.id);
    const holder = await holderOf(tx, node.id);
    if (holder !== null) throw heldError(node, holder, "it cannot be activated");
    if (node.status === "retired" && (await isHostReleased(tx, node))) {
      const message = `Node ${node.hostname} cannot be activated: its machine was released in MAAS, so its host is gone. Remove the node, then onboard the host again.`;
      throw new ApiError("conflict", message, { context: { node_id: node.id, node_status: node.status } });
    }
    const step = await activate(tx, node.id, body.reason);
    if (step.kind === "refused") {
      const message = `Node ${node.hostname} is ${node.status}; only a retired node is activated.`;
      throw new ApiError("conflict", message, { context: { node_id: node.id, node_status: node.status } });
    }
    // A node that is active already may have a host that its last undrain could not open: asking again is the way to try again.
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
  operationId: "revokeNodeCertificates",
  method: "POST",
  path: `${path}/revoke-certificates`,
  tag,
  summary: "End a node's identity: its agent is cut off until the node is enrolled or onboarded anew",
  permission: "write",
  params: NodeParams,
  body: z.strictObject({ reason: Reason }),
  status: 200,
  response: NodeState,
  write: async ({ params, body }, tx) => {
    const node = await lockedNode(tx, params.id);
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

export const nodeOperationRoutes = [activateNode, revokeNodeCertificates];
