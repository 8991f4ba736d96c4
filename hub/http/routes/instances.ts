import { z } from "zod";
import { Tenant } from "../../../shared/api/allocations.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { Instance, InstanceDetail, StatusHistory } from "../../../shared/api/instances.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { HEALTH_TEMPLATES } from "../../../shared/health-report.ts";
import { AllocationId, NodeId, SiteId } from "../../../shared/ids.ts";
import { instanceStatus } from "../../allocations/instance-status.ts";
import { type HistoryEvent, statusHistory } from "../../allocations/status-history.ts";
import { listOpenAllocations, readAllocation } from "../../db/queries/allocations.ts";
import { type HistoryRow, listHistory, readInstanceHosts } from "../../db/queries/instances.ts";
import { listHealthOverrides } from "../../db/queries/node-health-overrides.ts";
import { readReadiness } from "../../db/queries/node-readiness.ts";
import { readNode } from "../../db/queries/nodes.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { AllocationRow } from "../../db/schema/index.ts";
import type { Db } from "../../db/tx.ts";
import { overridesInForce } from "../../node/health-aggregate.ts";
import { readinessOf } from "../../node/readiness-verdict.ts";
import { readinessFactsOf } from "../../node/scheduling-facts.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { readRoute } from "../route.ts";

const path = "/api/v1/admin/instances";
const tag = "instances";
/** The largest number of events from which a status history is made. */
const MOST_EVENTS = 2_000;

/** The sources of the health overrides by which a repair of a host shows. */
const REPAIRS: ReadonlySet<string> = new Set([
  HEALTH_TEMPLATES.RequestRepair.source,
  HEALTH_TEMPLATES.RequestOnlineRepair.source,
  HEALTH_TEMPLATES.OutForRepair.source,
]);

type OpenRow = AllocationRow & { readonly status: Exclude<AllocationRow["status"], "ended"> };
const isOpen = (row: AllocationRow): row is OpenRow => row.status !== "ended";

/** Computes the instances of open allocations, with a fixed number of SQL statements. */
async function toInstances(db: Db, rows: readonly OpenRow[]): Promise<z.input<typeof Instance>[]> {
  const nodeIds = [...new Set(rows.map(({ nodeId }) => nodeId))];
  const readiness = new Map((await readReadiness(db, nodeIds)).map((row) => [row.node.id, row]));
  const overrides = await listHealthOverrides(db, nodeIds);
  const hosts = await readInstanceHosts(
    db,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => {
    const known = readiness.get(row.nodeId);
    const host = hosts.get(row.id);
    const verdict = instanceStatus({
      allocation: row.status,
      node: known?.node.status ?? null,
      lacks:
        known === undefined
          ? []
          : readinessOf(readinessFactsOf(known), known.conditions).lacking.map(({ kind }) => kind),
      isRepaired: overridesInForce(overrides.filter(({ nodeId }) => nodeId === row.nodeId)).some(({ source }) =>
        REPAIRS.has(source),
      ),
      hasFailedTurnover: host?.hasFailedTurnover ?? false,
    });
    const { room = null, rack = null, unit = null } = known?.node ?? {};
    return {
      id: row.id,
      tenant: row.tenant,
      site_id: row.siteId,
      node_id: row.nodeId,
      hostname: row.hostname,
      status: verdict.status,
      status_reason: verdict.reason,
      labels: row.labels,
      login_user: row.loginUser,
      host: known?.node.host ?? null,
      port: known?.node.port ?? 22,
      sku_id: known?.node.sku ?? null,
      location: { room, rack, unit },
      zone: host?.zone ?? null,
      power_state: host?.powerState ?? null,
      created_at: row.createdAt.toISOString(),
      active_at: isoOrNull(row.activeAt),
      ends_at: isoOrNull(row.endsAt),
    };
  });
}

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
    const [instance] = await toInstances(deps.db, [row]);
    if (instance === undefined) throw new Error("an open allocation gave no instance");
    return { ...instance, ssh_keys: row.sshKeys };
  },
});

/** Returns the row as the event that it stands for; the query gives each kind its own fields. */
function toEvent({ what, at, toStatus, tenant, verdict, message }: HistoryRow): HistoryEvent[] {
  if (what === "moved") return toStatus === null ? [] : [{ what, at, to: toStatus, message }];
  if (what === "sanitized") return verdict === null ? [] : [{ what, at, verdict }];
  return what === "tenancy_began" ? [{ what, at, tenant: tenant ?? "" }] : [{ what, at }];
}

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
    const rows = await listHistory(deps.db, params.id, MOST_EVENTS + 1);
    const shown = rows.slice(0, MOST_EVENTS).toReversed();
    return {
      node_id: params.id,
      cut: rows.length > MOST_EVENTS || shown[0]?.what !== "moved",
      entries: statusHistory(shown.flatMap(toEvent)).map((entry) => ({ ...entry, at: entry.at.toISOString() })),
    };
  },
});

export const instanceRoutes = [list, get, history];
