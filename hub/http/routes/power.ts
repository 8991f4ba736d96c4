import { z } from "zod";
import { NodePowerRequest, PowerAction, PowerOffRequest, PowerRequest } from "../../../shared/api/power.ts";
import { AllocationId, NodeId } from "../../../shared/ids.ts";
import type { PowerVerb } from "../../../shared/power.ts";
import type { PowerAction as PowerActionRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { requestInstancePower, requestNodePower } from "../../power/request-power.ts";
import { writeRoute } from "../route.ts";
import { toPowerAction } from "./power-rows.ts";

const path = "/api/v1/admin/instances/{id}";
const ofInstance = {
  method: "POST",
  tag: "instances",
  permission: "write",
  right: "allocate",
  place: { of: "allocation", param: "id" },
  params: z.strictObject({ id: AllocationId }),
  status: 202,
  response: PowerAction,
} as const;

interface Asked {
  readonly params: { readonly id: AllocationId };
  readonly body: { readonly reason: string; readonly immediate?: boolean };
  readonly actor: { readonly name: string; readonly tenant: string | null };
}

const askFor =
  (verb: PowerVerb) =>
  async ({ params, body: { reason, immediate = false }, actor }: Asked, tx: Tx) =>
    told(await requestInstancePower(tx, params.id, { verb, immediate, reason, by: actor }));

const told = (row: PowerActionRow) => ({
  body: toPowerAction(row),
  audit: {
    target: row.allocationId === null ? `nodes/${row.nodeId}` : `allocations/${row.allocationId}`,
    reason: row.reason,
    details: {
      action_id: row.id,
      node_id: row.nodeId,
      hostname: row.hostname,
      tenant: row.tenant,
      verb: row.verb,
      immediate: row.immediate,
    },
  },
});

const on = writeRoute({
  ...ofInstance,
  operationId: "powerOnInstance",
  path: `${path}/power-on`,
  summary: "Power on the machine of an instance, and wait for its host",
  body: PowerRequest,
  write: askFor("on"),
});
const off = writeRoute({
  ...ofInstance,
  operationId: "powerOffInstance",
  path: `${path}/power-off`,
  summary: "Shut down the host of an instance and leave its machine off; the instance keeps the machine",
  body: PowerOffRequest,
  write: askFor("off"),
});
const cycle = writeRoute({
  ...ofInstance,
  operationId: "powerCycleInstance",
  path: `${path}/power-cycle`,
  summary: "Switch the machine of an instance off for a minute and on again, without a shutdown",
  body: PowerRequest,
  write: askFor("cycle"),
});
const reboot = writeRoute({
  ...ofInstance,
  operationId: "rebootInstance",
  path: `${path}/reboot`,
  summary: "Shut down the host of an instance and start it again",
  body: PowerOffRequest,
  write: askFor("reboot"),
});

const node = writeRoute({
  operationId: "powerNode",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/power",
  tag: "nodes",
  summary: "Switch the power of a node's machine: on, off, cycle or reboot",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: z.strictObject({ id: NodeId }),
  body: NodePowerRequest,
  status: 202,
  response: PowerAction,
  write: async ({ params, body, actor }, tx) => {
    const { verb, immediate, reason, acknowledge_tenant: knowsTenant } = body;
    return told(await requestNodePower(tx, params.id, { verb, immediate, reason, by: actor, knowsTenant }));
  },
});

export const powerRoutes = [on, off, cycle, reboot, node];
