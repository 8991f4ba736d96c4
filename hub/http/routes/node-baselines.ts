import { z } from "zod";
import { Baseline } from "../../../shared/api/baselines.ts";
import { Reason } from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { NodeId } from "../../../shared/ids.ts";
import { readBaseline } from "../../db/queries/node-baselines.ts";
import { readNode } from "../../db/queries/nodes.ts";
import { operationOfNode } from "../../db/queries/workflow-subjects.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { requestNewBaseline } from "../../node/baseline.ts";
import { heldError, mustLockNode } from "../../workflows/decommission/start-decommission.ts";
import { readRoute, writeRoute } from "../route.ts";
import { snapshotOf, toBaselineState } from "./baseline-rows.ts";

const of = { path: "/api/v1/admin/nodes/{id}/baseline", tag: "nodes", params: z.strictObject({ id: NodeId }) } as const;

async function answerOf(db: Db | Tx, nodeId: NodeId, generation: number): Promise<z.input<typeof Baseline>> {
  const row = await readBaseline(db, nodeId, generation);
  return { node_id: nodeId, ...toBaselineState(generation, row), snapshot: snapshotOf(row) };
}

const getBaseline = readRoute({
  ...of,
  operationId: "getNodeBaseline",
  method: "GET",
  summary: "Read the snapshot of a node's host that later snapshots are compared with",
  permission: "read",
  right: "read_fleet",
  place: { of: "node", param: "id" },
  status: 200,
  response: Baseline,
  read: async ({ params, deps }) => {
    const node = await readNode(deps.db, params.id);
    if (node === null) throw new ApiError("not_found", `There is no node ${params.id}.`);
    return answerOf(deps.db, node.id, node.generation);
  },
});

const takeBaseline = writeRoute({
  ...of,
  operationId: "takeNodeBaseline",
  method: "POST",
  summary: "Take a new baseline of a node's host, after a change by the site; not while a tenant has or left something",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  body: z.strictObject({ reason: Reason }),
  status: 202,
  response: Baseline,
  write: async ({ params, body, actor }, tx) => {
    const node = await mustLockNode(tx, params.id);
    const holder = await operationOfNode(tx, node.id);
    if (holder !== null) throw heldError(node, holder, "no baseline can be taken");
    await requestNewBaseline(tx, node, `operator:${actor.name}`, body.reason);
    return {
      body: await answerOf(tx, node.id, node.generation),
      audit: { target: `nodes/${node.id}`, reason: body.reason, details: { generation: node.generation } },
    };
  },
});

export const nodeBaselineRoutes = [getBaseline, takeBaseline];
