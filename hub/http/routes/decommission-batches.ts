import { DecommissionBatchCreate, DecommissionBatchCreated } from "../../../shared/api/batches.ts";
import { startDecommissionBatch } from "../../workflows/decommission/start-decommission-batch.ts";
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
  secondPerson: ({ body }, tx) => decommissionBatchNeeds(tx, body),
  write: async (call, tx) => {
    const { body } = call;
    const created = await startDecommissionBatch(tx, body, sourceOf(call));
    const { batch_id: batchId, mode, matched, accepted, refused } = created;
    return {
      body: created,
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
