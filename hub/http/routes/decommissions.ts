import { z } from "zod";
import {
  Decommission,
  DecommissionCreate,
  DecommissionCreated,
  DecommissionDetail,
  DecommissionId,
  DrainCreate,
  Reason,
  ReleaseCreate,
  RemoveCreate,
  StorageCleanupCreate,
} from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { BatchId, NodeId, SiteId, type WorkflowId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { DECOMMISSION_MODES, type DecommissionMode, StatusFilter } from "../../../shared/workflow-status.ts";
import { listDecommissions, readDecommission } from "../../db/queries/decommissions.ts";
import { readNode } from "../../db/queries/nodes.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { ENDS_SERVICE } from "../../people/approvals/decommission-asks.ts";
import { applyForce } from "../../workflows/decommission/force-decommission.ts";
import { startDecommission } from "../../workflows/decommission/start-decommission.ts";
import { applyVerb } from "../../workflows/engine/apply-verb.ts";
import { VERBS, type Verb } from "../../workflows/engine/recovery.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { readRoute, sourceOf, writeRoute } from "../route.ts";
import { VERB_SUMMARIES } from "../verb-summaries.ts";
import { decommissionNeeds, forceNeeds } from "./second-person.ts";

const DecommissionParams = z.strictObject({ id: DecommissionId });
const NodeParams = z.strictObject({ id: NodeId });
const tag = "decommissions";
const path = "/api/v1/admin/decommissions";

async function mustFindDecommission(db: Db | Tx, id: WorkflowId): Promise<DecommissionDetail> {
  const found = await readDecommission(db, id);
  if (found === null) throw new ApiError("not_found", `There is no decommission ${id}.`);
  return found;
}

/** The status of a node after each kind of decommission has completed; null if the node's status does not change. */
const NODE_BECOMES = {
  drain: "retired",
  remove: "deleted",
  release: null,
  soft_reset: null,
  reimage: "active",
  storage_cleanup: null,
  full_decommission: "deleted",
  reinstall: "active",
} as const satisfies Record<DecommissionMode, NodeStatus | null>;

/**
 * Returns the audit entry of a request for a decommission. The audit entry contains all options of the request, even options for which the hub used
 * the default.
 */
function auditOf<Body extends { readonly reason: string }>(
  created: z.output<typeof DecommissionCreated>,
  prior: NodeStatus | null,
  { reason, ...options }: Body,
) {
  const expected = { status: NODE_BECOMES[created.mode] ?? prior };
  return {
    target: `nodes/${created.node_id}`,
    reason,
    details: { ...created, options, prior: { status: prior }, expected },
  };
}

const drainNode = writeRoute({
  operationId: "drainNode",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/drain",
  tag,
  summary: "Take a node out of service: cordon, drain, retire",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: NodeParams,
  body: DrainCreate,
  status: 202,
  response: DecommissionCreated,
  write: async ({ params, body, actor }, tx) => {
    const node = await readNode(tx, params.id);
    const created = await startDecommission(tx, params.id, { mode: "drain", ...body }, actor.name);
    const options = { force_release_allocation: false, ...body };
    return { body: created, audit: auditOf(created, node?.status ?? null, options) };
  },
});

const removeNode = writeRoute({
  operationId: "removeNode",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/remove",
  tag,
  summary: "Uninstall a retired node's agent, revoke its certificates and delete the node",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: NodeParams,
  body: RemoveCreate,
  status: 202,
  response: DecommissionCreated,
  secondPerson: ({ params, body }, tx) => decommissionNeeds(tx, params.id, { mode: "remove", ...body }),
  write: async ({ params, body, actor }, tx) => {
    const node = await readNode(tx, params.id);
    const created = await startDecommission(tx, params.id, { mode: "remove", ...body }, actor.name);
    return { body: created, audit: auditOf(created, node?.status ?? null, body) };
  },
});

const releaseNode = writeRoute({
  operationId: "releaseNode",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/release",
  tag,
  summary:
    "Release the machine of a retired or removed node in MAAS and power it off; the node cannot be activated again",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: NodeParams,
  body: ReleaseCreate,
  status: 202,
  response: DecommissionCreated,
  secondPerson: ({ params, body }, tx) => decommissionNeeds(tx, params.id, { mode: "release", ...body }),
  write: async ({ params, body, actor }, tx) => {
    const node = await readNode(tx, params.id);
    const created = await startDecommission(tx, params.id, { mode: "release", ...body }, actor.name);
    return { body: created, audit: auditOf(created, node?.status ?? null, body) };
  },
});

const decommissionNode = writeRoute({
  operationId: "decommissionNode",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/decommission",
  tag,
  summary: "Prepare a node for the next tenant, or take it and its host out of the fleet",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: NodeParams,
  body: DecommissionCreate,
  status: 202,
  response: DecommissionCreated,
  secondPerson: ({ params, body }, tx) => decommissionNeeds(tx, params.id, body),
  write: async ({ params, body, actor }, tx) => {
    const node = await readNode(tx, params.id);
    const created = await startDecommission(tx, params.id, body, actor.name);
    const options = body.mode === "full_decommission" ? { force_release_allocation: false, ...body } : body;
    return { body: created, audit: auditOf(created, node?.status ?? null, options) };
  },
});

const cleanNodeStorage = writeRoute({
  operationId: "cleanNodeStorage",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/storage-cleanup",
  tag,
  summary: "Clean the storage of a node without a tenant, and return the node to service",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: NodeParams,
  body: StorageCleanupCreate,
  status: 202,
  response: DecommissionCreated,
  secondPerson: ({ params, body }, tx) => decommissionNeeds(tx, params.id, { mode: "storage_cleanup", ...body }),
  write: async ({ params, body, actor }, tx) => {
    const node = await readNode(tx, params.id);
    const created = await startDecommission(tx, params.id, { mode: "storage_cleanup", ...body }, actor.name);
    return { body: created, audit: auditOf(created, node?.status ?? null, body) };
  },
});

const listAllDecommissions = readRoute({
  operationId: "listDecommissions",
  method: "GET",
  path,
  tag,
  summary: "List decommissions, newest first",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    batch_id: BatchId.optional(),
    node_id: NodeId.optional(),
    site_id: SiteId.optional(),
    mode: z.enum(DECOMMISSION_MODES).optional(),
    status: StatusFilter.optional(),
    hostname: Hostname.optional(),
  }),
  status: 200,
  response: page(Decommission),
  read: async ({ query, actor, deps }) => {
    const rows = await listDecommissions(
      deps.db,
      {
        batchId: query.batch_id,
        nodeId: query.node_id,
        siteId: query.site_id,
        mode: query.mode,
        status: query.status,
        hostname: query.hostname,
        reach: actor,
      },
      { before: readBefore(query.cursor), limit: query.limit + 1 },
    );
    return pageOf(
      rows,
      query.limit,
      ({ decommission, at }) => [at, decommission.decommission_id],
      ({ decommission }) => decommission,
    );
  },
});

const getDecommission = readRoute({
  operationId: "getDecommission",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a decommission with its stage events",
  permission: "read",
  right: "read_fleet",
  place: { of: "decommission", param: "id" },
  params: DecommissionParams,
  status: 200,
  response: DecommissionDetail,
  read: ({ params, deps }) => mustFindDecommission(deps.db, params.id),
});

const VerbBody = z.strictObject({ reason: z.string().min(1).max(512) });

/**
 * An operator can apply the same verbs to a decommission as to an onboarding, for example `retry` and `cancel`. One table says which verbs are
 * allowed for onboardings and decommissions (lifecycle 4.9, state model 8).
 */
const verbRoute = (verb: Verb) =>
  writeRoute({
    operationId: `${verb.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())}Decommission`,
    method: "POST",
    path: `${path}/{id}/${verb.replaceAll("_", "-")}`,
    tag,
    summary: VERB_SUMMARIES[verb],
    permission: "write",
    right: "operate_nodes",
    place: { of: "decommission", param: "id" },
    params: DecommissionParams,
    body: VerbBody,
    status: 200,
    response: DecommissionDetail,
    write: async (call, tx) => {
      const { params, body, deps } = call;
      await mustFindDecommission(tx, params.id);
      await applyVerb(tx, deps.workflows, {
        workflowId: params.id,
        verb,
        ...sourceOf(call),
        reason: body.reason,
      });
      return {
        body: await mustFindDecommission(tx, params.id),
        audit: { target: `decommissions/${params.id}`, reason: body.reason },
      };
    },
  });

const force = writeRoute({
  operationId: "forceDecommission",
  method: "POST",
  path: `${path}/{id}/force`,
  tag,
  summary: "Continue without an agent that cannot be reached, and end the remaining login sessions",
  permission: "write",
  right: "operate_nodes",
  place: { of: "decommission", param: "id" },
  params: DecommissionParams,
  body: z.strictObject({ reason: Reason }),
  status: 200,
  response: DecommissionDetail,
  secondPerson: async ({ params, body }, tx) => {
    const found = await readDecommission(tx, params.id);
    if (found === null) return null;
    const about = { nodeId: found.node_id, hostname: found.hostname, endsService: ENDS_SERVICE[found.mode] };
    return forceNeeds(tx, about, body.reason);
  },
  write: async (call, tx) => {
    const { params, body, deps } = call;
    const before = await mustFindDecommission(tx, params.id);
    await applyForce(tx, deps.workflows, {
      workflowId: params.id,
      ...sourceOf(call),
      reason: body.reason,
    });
    return {
      body: await mustFindDecommission(tx, params.id),
      audit: {
        target: `decommissions/${params.id}`,
        reason: body.reason,
        details: {
          prior: { status: before.status, stage: before.current_stage },
          expected: { status: "completed", node_status: NODE_BECOMES[before.mode] },
          node_id: before.node_id,
        },
      },
    };
  },
});

export const decommissionRoutes = [
  drainNode,
  removeNode,
  releaseNode,
  decommissionNode,
  cleanNodeStorage,
  listAllDecommissions,
  getDecommission,
  ...VERBS.map(verbRoute),
  force,
];
