import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { BootstrapCommand, BootstrapCommandCreate, NodeCreate, NodeReEnroll } from "../../../shared/api/nodes.ts";
import { NodeId } from "../../../shared/ids.ts";
import { isReadInFull } from "../../../shared/machine-details.ts";
import { lockUntilCommit } from "../../db/advisory-locks.ts";
import { readMaasSystemId } from "../../db/queries/decommissions.ts";
import { readObservedMachine } from "../../db/queries/maas-machines.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import { revokeCertificates } from "../../db/queries/node-certificates.ts";
import { findLivingNode, lockNode, nextGeneration } from "../../db/queries/nodes.ts";
import { readSku } from "../../db/queries/skus.ts";
import { operationOfNode } from "../../db/queries/workflow-subjects.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { bootstrapCommand } from "../../gateway/bootstrap-script-route.ts";
import { createNode } from "../../node/create-node.ts";
import { getsBootstrapCommand, RE_ENROLLED } from "../../node/enroll-again.ts";
import { issueEnrollmentToken } from "../../node/enrollment-tokens.ts";
import { provingMacs } from "../../node/same-host.ts";
import { heldError } from "../../workflows/decommission/start-decommission.ts";
import type { ApiDependencies } from "../deps.ts";
import { type Route, writeRoute } from "../route.ts";

const path = "/api/v1/admin/nodes";
const tag = "nodes";

const createManualNode = writeRoute({
  operationId: "createNode",
  method: "POST",
  path,
  tag,
  summary: "Create a node of manual mode, and get the command that installs its host",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", body: "site_id" },
  answersSecret: true,
  body: NodeCreate,
  status: 201,
  response: BootstrapCommand,
  write: async ({ body, deps }, tx) => {
    const sku = await readSku(tx, body.sku_id);
    if (sku === null) throw new ApiError("not_found", `There is no SKU ${body.sku_id}. Create it first.`);
    await requireSite(tx, body.site_id);
    await requireFreeName(tx, body.hostname, body.site_id);
    const { node } = await createNode(tx, {
      id: NodeId.parse(randomUUID()),
      hostname: body.hostname,
      siteId: body.site_id,
      sku: sku.id,
      gpusTotal: sku.gpusTotal,
      regionCode: body.region_code,
      onboardingMode: "manual",
      location: body.location,
      owner: "admin_api",
    });
    return issueCommand(tx, deps, node, body.token_ttl_seconds);
  },
});

const createBootstrapCommand = writeRoute({
  operationId: "createBootstrapCommand",
  method: "POST",
  path: `${path}/{id}/bootstrap-command`,
  tag,
  summary:
    "Get a new bootstrap command for an adopted, external or manual node that is not in service yet; the previous command becomes void",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  answersSecret: true,
  params: z.strictObject({ id: NodeId }),
  body: BootstrapCommandCreate,
  status: 201,
  response: BootstrapCommand,
  write: async ({ params, body, deps }, tx) => {
    const node = await lockNode(tx, params.id);
    if (node === null) throw new ApiError("not_found", `There is no node ${params.id}.`);
    if (!getsBootstrapCommand(node))
      throw new ApiError(
        "conflict",
        `Node ${node.hostname} is ${node.status} and of ${node.onboardingMode} mode. Only a node of another mode than maas that is not in service yet, and whose host runs an agent, gets a bootstrap command.`,
      );
    const holder = await operationOfNode(tx, node.id);
    if (holder !== null) throw heldError(node, holder, "it gets no bootstrap command");
    return issueCommand(tx, deps, node, body.token_ttl_seconds);
  },
});

const reEnrollNode = writeRoute({
  operationId: "reEnrollNode",
  method: "POST",
  path: `${path}/{id}/re-enroll`,
  tag,
  summary:
    "Void a node's identity, and get the command that enrolls its host again; the host that runs the command gets the identity",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  answersSecret: true,
  params: z.strictObject({ id: NodeId }),
  body: NodeReEnroll,
  status: 201,
  response: BootstrapCommand,
  write: async ({ params, body, deps }, tx) => {
    const node = await lockNode(tx, params.id);
    if (node === null) throw new ApiError("not_found", `There is no node ${params.id}.`);
    const holder = await operationOfNode(tx, node.id);
    if (holder !== null) throw heldError(node, holder, "it cannot be enrolled anew");
    if (!RE_ENROLLED.has(node.status))
      throw new ApiError(
        "conflict",
        `Node ${node.hostname} is ${node.status}; only a node in service or in quarantine can be enrolled again. ${INSTEAD[node.onboardingMode]}`,
        { context: { node_id: node.id, node_status: node.status } },
      );
    const revoked = await revokeCertificates(tx, node.id, "all", `re-enrolled: ${body.reason}`);
    const { body: answer, audit } = await issueCommand(tx, deps, node, body.token_ttl_seconds);
    const details = { ...audit.details, prior: { status: node.status, valid_certificates: revoked } };
    return { body: answer, audit: { ...audit, reason: body.reason, details } };
  },
});
const INSTEAD = {
  manual: "A node of manual mode that is not in service yet gets a bootstrap command (create-bootstrap-command).",
  maas: "If the host's onboarding is not over, begin it again with restart-clean.",
  external: "An external node that is not in service yet gets a command by create-bootstrap-command.",
  adopted: "An adopted node that is not in service yet gets a command by create-bootstrap-command.",
} as const satisfies Record<Node["onboardingMode"], string>;

async function requireSite(tx: Tx, siteId: NodeCreate["site_id"]): Promise<void> {
  if (siteId === null) return;
  if ((await readSite(tx, siteId)) === null) throw new ApiError("not_found", `There is no site ${siteId}.`);
}

async function requireFreeName(tx: Tx, hostname: string, siteId: NodeCreate["site_id"]): Promise<void> {
  await lockUntilCommit(tx, "manual_node_name", hostname);
  const taken = await findLivingNode(tx, hostname, siteId);
  if (taken === null) return;
  throw new ApiError(
    "conflict",
    `Node ${taken.id} has the name ${hostname} already. Ask for a new bootstrap command of that node, or remove it first.`,
  );
}

export async function issueCommand(tx: Tx, deps: ApiDependencies, node: Node, ttlSeconds: number) {
  const { token, expiresAt } = await issueEnrollmentToken(tx, {
    nodeId: node.id,
    workflowId: null,
    // A new bootstrap command for a node that an external system provisions does not begin a new generation of the node, because the generation
    // belongs to the present provisioning attempt, which goes on.
    generation: node.onboardingMode === "external" ? node.generation : await nextGeneration(tx, node.id),
    ...(await hostOf(tx, node)),
    ttlSeconds,
  });
  return {
    body: {
      node_id: node.id,
      bootstrap_command: bootstrapCommand(deps.agentUrl, deps.caBundlePem(), token),
      expires_at: expiresAt.toISOString(),
    },
    audit: { target: `nodes/${node.id}`, details: { hostname: node.hostname, token_ttl_seconds: ttlSeconds } },
  };
}

/** The token of an adopted node is bound to its machine's MAC addresses, so that no other host can enroll with it (decision N8). */
async function hostOf(tx: Tx, node: Node): Promise<{ maasSystemId: string | null; boundMacs: readonly string[] }> {
  if (node.onboardingMode !== "adopted") return { maasSystemId: null, boundMacs: [] };
  const systemId = await readMaasSystemId(tx, node.id);
  const machine =
    systemId === null || node.siteId === null ? null : await readObservedMachine(tx, node.siteId, systemId);
  const boundMacs = machine !== null && isReadInFull(machine.details) ? provingMacs(machine.details.macs) : [];
  if (boundMacs.length > 0) return { maasSystemId: systemId, boundMacs };
  throw new ApiError(
    "conflict",
    `MAAS knows no MAC address that only the machine of node ${node.hostname} can have, so no host could prove that it is the machine. Commission the machine in MAAS, or remove the node.`,
    { context: { node_id: node.id } },
  );
}

export const manualNodeRoutes: readonly Route[] = [createManualNode, createBootstrapCommand, reEnrollNode];
