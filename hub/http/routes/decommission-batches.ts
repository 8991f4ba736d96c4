import { DecommissionBatchCreate, DecommissionBatchCreated } from "../../../shared/api/batches.ts";
import { selectNodes, startDecommissionBatch } from "../../workflows/decommission/start-decommission-batch.ts";
import { sourceOf, writeRoute } from "../route.ts";
import { decommissionBatchNeeds } from "./second-person.ts";

const createDecommissionBatch = writeRoute({
  operationId: "createDecommissionBatch",
  method: "POST",
  path: "/api/v1/admin/decommissions/batch",
  tag: "decommissions",
  summary: "Decommission many nodes of a site, named or by a filter; with plan, only say which would be taken",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", body: "site_id" },
  body: DecommissionBatchCreate,
  status: 202,
  response: DecommissionBatchCreated,
  fixes: async ({ body }, tx) =>
    body.filter === undefined || body.plan
      ? null
      : { of: "nodes", ids: (await selectNodes(tx, body)).nodes.map(({ id }) => id) },
  secondPerson: ({ body }, tx, fixed) => decommissionBatchNeeds(tx, body, fixed),
  write: async (call, tx) => {
    const { body } = call;
    const created = await startDecommissionBatch(tx, body, sourceOf(call));
    const { batch_id: batchId, mode, matched, accepted, refused, decommissions, refusals } = created;
    return {
      body: created,
      touched: [...decommissions, ...refusals].map((one) => one.node_id),
      audit: {
        target: batchId === null ? `maas-sites/${body.site_id}` : `decommission-batches/${batchId}`,
        reason: body.operation.reason,
        details: {
          mode,
          plan: body.plan,
          stop_after_failures: body.stop_after_failures ?? null,
          filter: body.filter ?? null,
          matched,
          accepted,
          refused,
        },
      },
    };
  },
});

export const decommissionBatchRoutes = [createDecommissionBatch];
