import { z } from "zod";
import { HostnamePrefix } from "../../../shared/api/batches.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { NodeDetail, NodeSummary } from "../../../shared/api/nodes.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { SkuId } from "../../../shared/api/sites.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { NodeId, SiteId } from "../../../shared/ids.ts";
import { Inventory } from "../../../shared/inventory.ts";
import { NodeStatus } from "../../../shared/node-status.ts";
import { readBaseline } from "../../db/queries/node-baselines.ts";
import { listNodeRows, type NodeRow, readNodeDetails } from "../../db/queries/node-reads.ts";
import type { Db } from "../../db/tx.ts";
import { schedulability } from "../../node/schedulable.ts";
import { schedulingFactsOf } from "../../node/scheduling-facts.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute } from "../route.ts";
import { toBaselineState } from "./baseline-rows.ts";
import { toHealthOverride } from "./health-override-rows.ts";

const NodeParams = z.strictObject({ id: NodeId });
const tag = "nodes";
const path = "/api/v1/admin/nodes";

function toSummary(row: NodeRow): z.input<typeof NodeSummary> {
  const { node, session, maasSystemId, conditions, allocation } = row;
  // The field `schedulable` of a node in a list says whether the node can take a tenant without root rights.
  const { schedulable, reasons } = schedulability(schedulingFactsOf(row, false), conditions);
  return {
    id: node.id,
    hostname: node.hostname,
    host: node.host,
    port: node.port,
    site_id: node.siteId,
    region_code: node.regionCode,
    sku_id: node.sku,
    gpus_total: node.gpusTotal,
    status: node.status,
    schedulable,
    unschedulable_reasons: reasons,
    cordon_reason: node.cordonReason,
    cordon_owner: node.cordonOwner,
    allocation:
      allocation === null ? null : { id: allocation.id, tenant: allocation.tenant, status: allocation.status },
    onboarding_mode: node.onboardingMode,
    maas_system_id: maasSystemId,
    generation: node.generation,
    last_agent_contact_at: node.lastAgentContactAt?.toISOString() ?? null,
    agent_version: session?.agentVersion ?? null,
    created_at: node.createdAt.toISOString(),
    updated_at: node.updatedAt.toISOString(),
  };
}

export async function mustFindNode(db: Db, id: NodeId): Promise<NodeRow> {
  const [row] = await listNodeRows(db, { id }, { limit: 1, after: null });
  if (row === undefined) throw new ApiError("not_found", `There is no node ${id}.`);
  return row;
}

const listNodes = readRoute({
  operationId: "listNodes",
  method: "GET",
  path,
  tag,
  summary: "List nodes by hostname; deleted nodes only on request",
  permission: "read",
  right: "read_nodes",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    status: NodeStatus.optional(),
    site_id: SiteId.optional(),
    sku_id: SkuId.optional(),
    hostname: Hostname.optional(),
    hostname_prefix: HostnamePrefix.optional(),
    include_deleted: z.enum(["true", "false"]).default("false"),
  }),
  status: 200,
  response: page(NodeSummary),
  read: async ({ query, actor, deps }) => {
    const rows = await listNodeRows(
      deps.db,
      {
        status: query.status,
        siteId: query.site_id,
        sku: query.sku_id,
        hostname: query.hostname,
        hostnamePrefix: query.hostname_prefix,
        deleted: query.include_deleted === "true",
        reach: actor,
      },
      { limit: query.limit + 1, after: readCursor(query.cursor, 2) },
    );
    return pageOf(rows, query.limit, (row) => [row.node.hostname, row.node.id], toSummary);
  },
});

const getNode = readRoute({
  operationId: "getNode",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a node with its conditions, inventory, MAAS state and history",
  permission: "read",
  right: "read_nodes",
  place: { of: "node", param: "id" },
  params: NodeParams,
  status: 200,
  response: NodeDetail,
  read: async ({ params, deps }) => {
    const row = await mustFindNode(deps.db, params.id);
    const { conditions, inventory, machine, events } = await readNodeDetails(deps.db, row.node, row.maasSystemId);
    return {
      ...toSummary(row),
      conditions: conditions.map((condition) => ({
        type: condition.type,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        generation: condition.generation,
        source: condition.source,
        observed_at: condition.observedAt.toISOString(),
        expires_at: condition.expiresAt?.toISOString() ?? null,
      })),
      health_overrides: row.overrides.map(toHealthOverride),
      baseline: toBaselineState(row.node.generation, await readBaseline(deps.db, row.node.id, row.node.generation)),
      // If an older hub stored an inventory that this version cannot parse, the answer contains no inventory.
      inventory: Inventory.safeParse(inventory).data ?? null,
      maas:
        machine === null
          ? null
          : {
              status: machine.absent ? "absent" : machine.statusName,
              power_state: machine.powerState,
              ip_addresses: machine.ipAddresses,
              last_sync: machine.lastSync?.toISOString() ?? null,
              next_sync: machine.nextSync?.toISOString() ?? null,
              observed_at: machine.observedAt.toISOString(),
            },
      events: events.map((event) => ({
        id: event.id.toString(),
        type: event.type,
        from_status: event.fromStatus,
        to_status: event.toStatus,
        owner: event.owner,
        message: event.message,
        occurred_at: event.occurredAt.toISOString(),
      })),
    };
  },
});

export const nodeRoutes = [listNodes, getNode];
