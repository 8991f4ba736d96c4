import { randomUUID } from "node:crypto";
import type { DecommissionBatchCreate, DecommissionBatchCreated } from "../../../shared/api/batches.ts";
import type { DecommissionCreated } from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { type BatchRefusal, groupRefusals, MOST_NODES } from "../../../shared/api/node-selection.ts";
import { BatchId, type NodeId } from "../../../shared/ids.ts";
import { type AuditSource, recordAudits } from "../../db/queries/audit-logs.ts";
import { insertBatch } from "../../db/queries/batches.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import { countMatchingNodes, lockMatchingNodes, type NodeSelection } from "../../db/queries/node-selection.ts";
import type { Node } from "../../db/schema/index.ts";
import { inUndoneSavepoint, type Tx } from "../../db/tx.ts";
import { startDecommissions } from "./start-decommission.ts";

type By = AuditSource;
type Accepted = { readonly node: Node; readonly created: DecommissionCreated };

/**
 * The hub refuses only the nodes of a batch that a request for one node would refuse, with the same error (lifecycle 5.10). With `plan`, the hub
 * carries out the request for a batch and undoes all its writes.
 */
export async function startDecommissionBatch(
  tx: Tx,
  request: DecommissionBatchCreate,
  by: By,
): Promise<DecommissionBatchCreated> {
  if ((await readSite(tx, request.site_id)) === null)
    throw new ApiError(
      "reference_unknown",
      `There is no site ${request.site_id}. List the sites and use one of them.`,
      {
        errors: [{ pointer: "/site_id", message: "names no site" }],
      },
    );
  if (request.plan) {
    const planned = await inUndoneSavepoint(tx, () => start(tx, request, by));
    const decommissions = planned.decommissions.map((one) => ({ ...one, decommission_id: null }));
    return { ...planned, batch_id: null, decommissions };
  }
  const started = await start(tx, request, by);
  if (started.accepted === 0) throw noneCanBegin(request, started.refusals);
  return started;
}

async function start(tx: Tx, request: DecommissionBatchCreate, by: By): Promise<DecommissionBatchCreated> {
  const { site_id: siteId, operation, filter = null } = request;
  const batchId = BatchId.parse(randomUUID());
  const { nodes, unknown } = await selectNodes(tx, request);
  const accepted: Accepted[] = [];
  const refusals: BatchRefusal[] = unknown.map((id) => ({
    node_id: id,
    hostname: null,
    error_code: "not_found",
    message: `Site ${siteId} has no node ${id}.`,
  }));
  const started = await startDecommissions(tx, nodes, { request: operation, requestedBy: by.actor, batchId });
  for (const node of nodes) {
    const one = started.get(node.id);
    if (one === undefined)
      throw new ApiError("internal_error", `The decommission of ${node.hostname} was not written.`);
    if (one instanceof ApiError)
      refusals.push({ node_id: node.id, hostname: node.hostname, error_code: one.code, message: one.message });
    else accepted.push({ node, created: one });
  }
  await recordAudits(
    tx,
    accepted.map(({ node, created }) => ({
      ...by,
      action: "decommission.start",
      target: `nodes/${node.id}`,
      reason: operation.reason,
      details: { ...created, batch_id: batchId, prior: { status: node.status } },
    })),
  );
  await insertBatch(tx, {
    id: batchId,
    kind: "decommission",
    siteId,
    operation,
    filter,
    refusals,
    stopAfterFailures: request.stop_after_failures ?? null,
    requestedBy: by.actor,
  });
  return {
    batch_id: batchId,
    mode: operation.mode,
    matched: nodes.length + unknown.length,
    accepted: accepted.length,
    refused: refusals.length,
    refused_by: groupRefusals(refusals),
    decommissions: accepted.map(({ node, created }) => ({
      hostname: node.hostname,
      node_id: node.id,
      node_status: node.status,
      decommission_id: created.decommission_id,
      warning: created.warning,
    })),
    refusals,
  };
}

/**
 * Locks the selected nodes in one order for all batches, so that two batches cannot deadlock. The hub counts the nodes that match a request's filter
 * before it locks them, because a refused request must not lock a whole fleet.
 */
export async function selectNodes(
  tx: Tx,
  {
    site_id: siteId,
    node_ids: ids,
    filter,
    expected_count: expected,
  }: Pick<DecommissionBatchCreate, "site_id" | "node_ids" | "filter" | "expected_count">,
): Promise<{ nodes: Node[]; unknown: NodeId[] }> {
  const selection: NodeSelection = { siteId, ids, filter };
  if (filter !== undefined) mustBeExpected(await countMatchingNodes(tx, selection), expected);
  const nodes = await lockMatchingNodes(tx, selection);
  if (filter !== undefined) mustBeExpected(nodes.length, expected);
  const found = new Set(nodes.map((node) => node.id));
  return { nodes, unknown: (ids ?? []).filter((id) => !found.has(id)) };
}

export function mustBeExpected(matched: number, expected: number | undefined): void {
  if (expected !== undefined && matched !== expected)
    throw new ApiError(
      "count_mismatch",
      `The filter matches ${matched} nodes, but the request expects ${expected}. Nothing has begun. Ask for the plan, and correct the filter or the number.`,
      { errors: [{ pointer: "/expected_count", message: `the filter matches ${matched} nodes` }] },
    );
  if (matched > MOST_NODES)
    throw new ApiError(
      "conflict",
      `The filter matches ${matched} nodes, and a batch has at most ${MOST_NODES}. Nothing has begun. Narrow the filter.`,
      { errors: [{ pointer: "/filter", message: `matches ${matched} nodes` }] },
    );
}

const noneCanBegin = ({ node_ids: ids, operation }: DecommissionBatchCreate, refusals: readonly BatchRefusal[]) =>
  new ApiError(
    "conflict",
    refusals.length === 0
      ? `The filter matches no node, so no ${operation.mode} has begun. Correct the filter.`
      : `No ${operation.mode} can begin on any of the ${refusals.length} nodes. The first reason: ${refusals[0]?.message}`,
    {
      errors: refusals.map(({ node_id: id, error_code: code, message }) => ({
        pointer: ids === undefined ? "/filter" : `/node_ids/${ids.indexOf(id)}`,
        message: `${code}: ${message}`,
      })),
    },
  );
