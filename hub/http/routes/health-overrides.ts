import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { HealthOverride, HealthOverrideRemove } from "../../../shared/api/nodes.ts";
import { NodeId } from "../../../shared/ids.ts";
import { listHealthOverrides } from "../../db/queries/node-health-overrides.ts";
import { removeHealthOverride } from "../../node/health-override.ts";
import { mustLockNode } from "../../workflows/decommission/start-decommission.ts";
import { writeRoute } from "../route.ts";
import { toHealthOverride } from "./health-override-rows.ts";

const remove = writeRoute({
  operationId: "removeNodeHealthOverride",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/remove-health-override",
  tag: "nodes",
  summary: "Remove a health override, so that it no longer keeps new work off the node",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: z.strictObject({ id: NodeId }),
  body: HealthOverrideRemove,
  status: 200,
  response: z.strictObject({ node_id: NodeId, health_overrides: z.array(HealthOverride) }),
  write: async ({ params, body: { source, reason }, actor }, tx) => {
    const node = await mustLockNode(tx, params.id);
    const removed = await removeHealthOverride(tx, node.id, source, { by: `operator:${actor.name}`, reason });
    const left = (await listHealthOverrides(tx, [node.id])).map(toHealthOverride);
    if (removed === null) {
      const others = left.map((one) => one.source).join(", ") || "none";
      const message = `Node ${node.hostname} has no health override of the source ${source}. Its overrides: ${others}.`;
      throw new ApiError("not_found", message, { context: { node_id: node.id } });
    }
    const details = { prior: toHealthOverride(removed), expected: null };
    return {
      body: { node_id: node.id, health_overrides: left },
      audit: { target: `nodes/${node.id}`, reason, details },
    };
  },
});

export const healthOverrideRoutes = [remove];
