import { z } from "zod";
import { Tenant } from "../../../shared/api/allocations.ts";
import { DecommissionCreated } from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import {
  Instance,
  InstanceDetail,
  InstancePatch,
  InstanceReinstall,
  StatusHistory,
} from "../../../shared/api/instances.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { AllocationId, NodeId, SiteId } from "../../../shared/ids.ts";
import { changeLabels } from "../../allocations/change-labels.ts";
import { listOpenAllocations, readAllocation, readAllocationVersion } from "../../db/queries/allocations.ts";
import { readHistories } from "../../db/queries/machine-pages.ts";
import { readNode } from "../../db/queries/nodes.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { historyOf, isCut } from "../../node/machine-history.ts";
import { reinstallInstance } from "../../power/reinstall-instance.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { readRoute, Versioned, writeRoute } from "../route.ts";
import { isOpen, type OpenRow, toInstances } from "./instance-rows.ts";
import { changedMeanwhile, mustMatch, stillThere } from "./rows.ts";

const path = "/api/v1/admin/instances";
const tag = "instances";

const list = readRoute({
  operationId: "listInstances",
  method: "GET",
  path,
  tag,
  summary: "List instances, which are open allocations as their tenants see them, the newest first",
  permission: "read",
  right: "read_allocations",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    node_id: NodeId.optional(),
    site_id: SiteId.optional(),
    hostname: Hostname.optional(),
    tenant: Tenant.optional(),
  }),
  status: 200,
  response: page(Instance),
  read: async ({ query, actor, deps }) => {
    const { node_id: nodeId, site_id: siteId, hostname, tenant } = query;
    const none = { loginUser: undefined, status: undefined };
    const filter = { nodeId, siteId, hostname, tenant, ...none, reach: actor };
    const rows = await listOpenAllocations(deps.db, filter, {
      before: readBefore(query.cursor),
      limit: query.limit + 1,
    });
    const open = rows.flatMap(({ allocation, at }) => (isOpen(allocation) ? [{ allocation, at }] : []));
    const shown = open.slice(0, query.limit).map(({ allocation }) => allocation);
    const instances = new Map((await toInstances(deps.db, shown)).map((one) => [one.id, one]));
    return pageOf(
      open,
      query.limit,
      ({ allocation, at }) => [at, allocation.id],
      ({ allocation }) => instances.get(allocation.id) as z.input<typeof Instance>,
    );
  },
});

const get = readRoute({
  operationId: "getInstance",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read an instance with its SSH keys; an ended allocation is no instance any more",
  permission: "read",
  right: "read_allocations",
  place: { of: "allocation", param: "id" },
  params: z.strictObject({ id: AllocationId }),
  status: 200,
  response: InstanceDetail,
  read: async ({ params, deps }) => {
    const row = await readAllocation(deps.db, params.id);
    if (row === null) throw new ApiError("not_found", `There is no instance ${params.id}.`);
    if (!isOpen(row))
      throw new ApiError("not_found", `Instance ${params.id} has ended. Read its past by get-allocation.`);
    const version = stillThere(await readAllocationVersion(deps.db, row.id));
    return new Versioned(await toDetail(deps.db, row), version);
  },
});

async function toDetail(db: Db | Tx, row: OpenRow): Promise<z.input<typeof InstanceDetail>> {
  const [instance] = await toInstances(db, [row]);
  if (instance === undefined) throw new Error("an open allocation gave no instance");
  return { ...instance, ssh_keys: row.sshKeys };
}

const update = writeRoute({
  operationId: "updateInstance",
  method: "PATCH",
  path: `${path}/{id}`,
  tag,
  summary: "Replace the labels of an instance",
  permission: "write",
  right: "allocate",
  place: { of: "allocation", param: "id" },
  params: z.strictObject({ id: AllocationId }),
  body: InstancePatch,
  status: 200,
  response: InstanceDetail,
  write: async ({ params, body: { labels }, ifMatch, actor }, tx) => {
    const changed = await changeLabels(tx, params.id, { labels, version: mustMatch(ifMatch), actor: actor.name });
    if (changed === null) throw changedMeanwhile("instance");
    const { prior, now } = changed;
    if (!isOpen(now)) throw new Error("an open allocation has ended within its lock");
    return {
      body: new Versioned(await toDetail(tx, now), stillThere(await readAllocationVersion(tx, now.id))),
      audit: { target: `allocations/${now.id}`, details: { prior: { labels: prior.labels }, expected: { labels } } },
    };
  },
});

const reinstall = writeRoute({
  operationId: "reinstallInstance",
  method: "POST",
  path: `${path}/{id}/reinstall`,
  tag,
  summary: "Install the host of an instance anew for the same tenant; all that is on the disk of its system is lost",
  permission: "write",
  right: "allocate",
  place: { of: "allocation", param: "id" },
  params: z.strictObject({ id: AllocationId }),
  body: InstanceReinstall,
  status: 202,
  response: DecommissionCreated,
  write: async ({ params, body: { reason }, actor }, tx) => {
    const { allocation, created } = await reinstallInstance(tx, params.id, { reason, by: actor });
    const { tenant, hostname } = allocation;
    return {
      body: created,
      audit: { target: `allocations/${allocation.id}`, reason, details: { ...created, tenant, hostname } },
    };
  },
});

const history = readRoute({
  operationId: "getNodeStatusHistory",
  method: "GET",
  path: "/api/v1/admin/nodes/{id}/status-history",
  tag,
  summary: "Read which statuses a machine had; Reset comes from a sanitization record alone",
  permission: "read",
  right: "read_fleet",
  place: { of: "node", param: "id" },
  params: z.strictObject({ id: NodeId }),
  status: 200,
  response: StatusHistory,
  read: async ({ params, deps }) => {
    if ((await readNode(deps.db, params.id)) === null)
      throw new ApiError("not_found", `There is no node ${params.id}.`);
    const records = await readHistories(deps.db, [params.id]);
    return {
      node_id: params.id,
      cut: isCut(params.id, records),
      entries: historyOf(params.id, records).map((entry) => ({ ...entry, at: entry.at.toISOString() })),
    };
  },
});

export const instanceRoutes = [list, get, update, reinstall, history];
