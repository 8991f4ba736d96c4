import { ApiError } from "../../../shared/api/errors.ts";
import { type BulkAction, NodeBulkCreate, NodeBulkResult, NodeChange } from "../../../shared/api/node-bulk.ts";
import { type BatchRefusal, groupRefusals } from "../../../shared/api/node-selection.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { noteAsker } from "../../db/committed.ts";
import { recordAudit } from "../../db/queries/audit-logs.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import { countMatchingNodes, listMatchingNodes, lockMatchingNodes } from "../../db/queries/node-selection.ts";
import type { Node } from "../../db/schema/index.ts";
import { inSavepoint, inUndoneSavepoint, type Tx } from "../../db/tx.ts";
import { locate } from "../../node/locate.ts";
import { mustBeExpected } from "../../workflows/decommission/start-decommission-batch.ts";
import { HOSTS_AT_ONCE } from "../../workflows/engine/batch-verbs.ts";
import { type Audit, type Call, type Route, sourceOf, writeRoute } from "../route.ts";
import { removeNodeHealthOverride } from "./health-overrides.ts";
import { nodeVerbs } from "./node-operations.ts";
import { unknownSite } from "./rows.ts";

type Request = Call<unknown, unknown, NodeBulkCreate>;
type Done =
  | { readonly node: Node; readonly change: NodeChange; readonly refusal: null }
  | { readonly node: Node; readonly refusal: BatchRefusal };

type Named = { readonly id: NodeId; readonly hostname: string | null };
const refusalOf = ({ id, hostname }: Named, { code, message }: ApiError): BatchRefusal => ({
  node_id: id,
  hostname,
  error_code: code,
  message,
});

interface Applied {
  readonly action: string;
  readonly audit: Audit;
  readonly change: NodeChange;
}

/** Applies the requested verb, for example `cordon`, to one node as the verb's own route does, with the same refusals and the same audit entry. */
async function applyToOne(call: Request, tx: Tx, node: Node): Promise<Applied> {
  const { action } = call.body;
  if (action.verb === "set_location") {
    const audit = await setLocation(tx, node, action, call.actor.name);
    return { action: "updateNode", audit, change: NodeChange.parse(audit.details) };
  }
  if (action.verb === "remove_health_override") {
    const { source, reason } = action;
    const done = await byRoute(removeNodeHealthOverride, call, tx, node, { source, reason });
    return { ...done, change: { prior: { health_override: source }, expected: { health_override: null } } };
  }
  const done = await byRoute(nodeVerbs[action.verb], call, tx, node, { reason: action.reason });
  return { ...done, change: NodeChange.parse(done.audit.details) };
}

async function byRoute(
  route: Route,
  call: Request,
  tx: Tx,
  node: Node,
  body: object,
): Promise<Omit<Applied, "change">> {
  if (route.write === undefined) throw new Error(`${route.operationId} does not write`);
  const one = { ...call, params: { id: node.id }, body };
  return { action: route.operationId, audit: (await route.write(one, tx, undefined)).audit };
}

/** A unit is a place in one rack, so a node whose rack changes keeps no unit. */
async function setLocation(
  tx: Tx,
  node: Node,
  { location, reason }: BulkAction & { readonly verb: "set_location" },
  by: string,
): Promise<Audit> {
  if (node.status === "deleted")
    throw new ApiError("conflict", `Node ${node.hostname} is deleted, so its host stands nowhere.`);
  const { room = node.room, rack = node.rack } = location;
  const expected = { room, rack, unit: rack === node.rack ? node.unit : null };
  await locate(tx, node, expected, by);
  const prior = { room: node.room, rack: node.rack, unit: node.unit };
  return { target: `nodes/${node.id}`, reason, details: { prior, expected } };
}

async function applyOrRefuse(call: Request, tx: Tx, node: Node): Promise<Done> {
  try {
    const { action, audit, change } = await inSavepoint(tx, () => applyToOne(call, tx, node));
    const { target, reason = null, details = {} } = audit;
    await recordAudit(tx, { ...sourceOf(call), action, target, reason, details });
    return { node, change, refusal: null };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { node, refusal: refusalOf(node, error) };
  }
}

/**
 * Applies the requested verb, for example `cordon`, to some of the selected nodes in one transaction. If a node no longer matches the request's
 * filter, the hub refuses the request's verb for this node.
 */
async function applyToSome(call: Request, tx: Tx, some: readonly Node[]): Promise<Done[]> {
  const { site_id: siteId, filter } = call.body;
  noteAsker(tx, { name: call.actor.name, requestId: call.requestId });
  const locked = await lockMatchingNodes(tx, { siteId, ids: some.map(({ id }) => id), filter });
  const found = new Map<NodeId, Node>(locked.map((node) => [node.id, node]));
  const done: Done[] = [];
  for (const node of some) {
    const now = found.get(node.id);
    if (now !== undefined) done.push(await applyOrRefuse(call, tx, now));
    else {
      const text = `Node ${node.hostname} matched the filter when the request began, and does not match it now.`;
      done.push({ node, refusal: refusalOf(node, new ApiError("conflict", text)) });
    }
  }
  return done;
}

/** Selects the nodes for which a request asks. The hub refuses a filter that matches another number of nodes than the request expects. */
async function selectNodes(tx: Tx, body: NodeBulkCreate): Promise<{ nodes: Node[]; unknown: BatchRefusal[] }> {
  const { site_id: siteId, node_ids: ids, filter, expected_count: expected } = body;
  if ((await readSite(tx, siteId)) === null) throw unknownSite(siteId);
  const selection = { siteId, ids, filter };
  // The hub counts the matching nodes before it lists them, because a filter without a bound may match a whole fleet.
  if (filter !== undefined) mustBeExpected(await countMatchingNodes(tx, selection), expected);
  const nodes = await listMatchingNodes(tx, selection);
  if (filter !== undefined) mustBeExpected(nodes.length, expected);
  const known = new Set(nodes.map(({ id }) => id));
  const absent = (ids ?? []).filter((id) => !known.has(id));
  const unknown = absent.map((id) =>
    refusalOf({ id, hostname: null }, new ApiError("not_found", `Site ${siteId} has no node ${id}.`)),
  );
  return { nodes, unknown };
}

/**
 * Applies the requested verb, for example `cordon`, to all selected nodes, a few in each transaction. If a request for several nodes only asks for a
 * plan (`plan`), each transaction undoes its own changes.
 */
async function applyToAll(call: Request): Promise<NodeBulkResult> {
  const { plan, action } = call.body;
  const { inTx } = call.deps;
  const { nodes, unknown } = await inTx((tx) => selectNodes(tx, call.body));
  const done: Done[] = [];
  for (let at = 0; at < nodes.length; at += HOSTS_AT_ONCE) {
    const some = nodes.slice(at, at + HOSTS_AT_ONCE);
    const apply = (tx: Tx) => applyToSome(call, tx, some);
    done.push(...(await inTx((tx) => (plan ? inUndoneSavepoint(tx, () => apply(tx)) : apply(tx)))));
  }
  const applied = done.flatMap((one) =>
    one.refusal === null
      ? { node_id: one.node.id, hostname: one.node.hostname, node_status: one.node.status, ...one.change }
      : [],
  );
  const refusals = [...unknown, ...done.flatMap(({ refusal }) => refusal ?? [])];
  return {
    verb: action.verb,
    plan,
    matched: nodes.length + unknown.length,
    applied: applied.length,
    refused: refusals.length,
    nodes: applied,
    refused_by: groupRefusals(refusals),
    refusals,
  };
}

const applyToNodes = writeRoute({
  operationId: "applyToNodes",
  method: "POST",
  path: "/api/v1/admin/nodes/bulk",
  tag: "nodes",
  summary: "Apply one verb to many nodes of a site, named or by a filter; with plan, only say what each node would get",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", body: "site_id" },
  body: NodeBulkCreate,
  status: 200,
  response: NodeBulkResult,
  // `applyToAll` changes the nodes in separate transactions of a few nodes each. The transaction of the route for several nodes itself writes only
  // the audit row.
  before: (call) => applyToAll(call),
  write: async ({ body }, _tx, result) => ({
    body: result,
    audit: {
      target: `maas-sites/${body.site_id}`,
      reason: body.action.reason,
      details: {
        verb: result.verb,
        plan: body.plan,
        filter: body.filter ?? null,
        matched: result.matched,
        applied: result.applied,
        refused: result.refused,
      },
    },
  }),
});

export const nodeBulkRoutes = [applyToNodes];
