import { z } from "zod";
import { MachineBinding, MachineBound, MachineUnbound } from "../../../shared/api/adoptions.ts";
import { Reason } from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { NodeId } from "../../../shared/ids.ts";
import { bindNode, siteOfBinding, unbindNode } from "../../adoption/bind-node.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import { readNode } from "../../db/queries/nodes.ts";
import { writeRoute } from "../route.ts";
import { bindingNeeds, unbindingNeeds } from "./second-person.ts";

const params = z.strictObject({ id: NodeId });
const path = "/api/v1/admin/nodes/{id}";

const bindNodeMachine = writeRoute({
  operationId: "bindNodeMachine",
  method: "POST",
  path: `${path}/bind-machine`,
  tag: "nodes",
  summary: "Bind a node of manual mode to the machine in MAAS that its host is; with plan, only say whether that works",
  permission: "write",
  right: "operate_nodes",
  place: [
    { of: "node", param: "id" },
    { of: "site", body: "site_id" },
  ],
  params,
  body: MachineBinding,
  status: 200,
  response: MachineBound,
  secondPerson: ({ params: { id }, body }, tx) => bindingNeeds(tx, id, body),
  before: async ({ params: { id }, body, deps }) => {
    const node = await readNode(deps.db, id);
    if (node === null) throw new ApiError("not_found", `There is no node ${id}.`);
    const siteId = siteOfBinding(node, body);
    if ((await readSite(deps.db, siteId)) === null) throw new ApiError("not_found", `There is no site ${siteId}.`);
    return deps.maasFacts(siteId, [body.maas_system_id]);
  },
  write: async ({ params: { id }, body, actor }, tx, facts) => {
    const bound = await bindNode(tx, id, body, facts, actor.name);
    return {
      body: bound,
      audit: {
        target: `nodes/${id}`,
        details: {
          plan: body.plan,
          maas_system_id: body.maas_system_id,
          profile_id: body.profile_id ?? null,
          accept_differences: body.accept_differences,
          outcome: bound.outcome,
          differences: bound.differences.map(({ kind }) => kind),
        },
      },
    };
  },
});

const unbindNodeMachine = writeRoute({
  operationId: "unbindNodeMachine",
  method: "POST",
  path: `${path}/unbind-machine`,
  tag: "nodes",
  summary: "Undo bind-node-machine: the node is of manual mode again, and the machine in MAAS is free for another node",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params,
  body: z.strictObject({ reason: Reason }),
  status: 200,
  response: MachineUnbound,
  secondPerson: ({ params: { id } }, tx) => unbindingNeeds(tx, id),
  write: async ({ params: { id }, body, actor }, tx) => {
    const systemId = await unbindNode(tx, id, body.reason, actor.name);
    return {
      body: { node_id: id, onboarding_mode: "manual" as const, maas_system_id: systemId },
      audit: { target: `nodes/${id}`, reason: body.reason, details: { maas_system_id: systemId } },
    };
  },
});

export const nodeMachineRoutes = [bindNodeMachine, unbindNodeMachine];
