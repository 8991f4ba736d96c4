import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { NodeFacets, NodeFilterQuery, NodeSort, nodeFilterQuery } from "../../../shared/api/node-filter.ts";
import { NodeDetail, NodeList, type NodeSummary } from "../../../shared/api/nodes.ts";
import { classOf } from "../../../shared/condition-types.ts";
import { NodeId } from "../../../shared/ids.ts";
import { Inventory } from "../../../shared/inventory.ts";
import { isReadInFull, type MachineDetails } from "../../../shared/machine-details.ts";
import { PROVISIONED_BY } from "../../../shared/onboarding-mode.ts";
import { readAdoption } from "../../db/queries/node-adoptions.ts";
import { readBaseline } from "../../db/queries/node-baselines.ts";
import { countFacets } from "../../db/queries/node-facets.ts";
import { countNodes, listNodeRows, type NodeRow, readNodeDetails } from "../../db/queries/node-reads.ts";
import { cursorOf } from "../../db/queries/node-sorts.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { schedulability } from "../../node/schedulable.ts";
import { schedulingFactsOf } from "../../node/scheduling-facts.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute, Versioned } from "../route.ts";
import { toAdoption } from "./adoption-rows.ts";
import { toBaselineState } from "./baseline-rows.ts";
import { toHealthOverrides } from "./health-override-rows.ts";
import { toNodeFilter } from "./node-filter-query.ts";
import { toReadiness } from "./readiness-rows.ts";

const NodeParams = z.strictObject({ id: NodeId });
const tag = "nodes";
const path = "/api/v1/admin/nodes";

export function toSummary(row: NodeRow): z.input<typeof NodeSummary> {
  const { node, session, maasSystemId, conditions, allocation } = row;
  // The field `schedulable` of a node in a list says whether the node can take a tenant without root rights.
  const { schedulable, reasons } = schedulability(schedulingFactsOf(row, false), conditions);
  return {
    id: node.id,
    hostname: node.hostname,
    host: node.host,
    port: node.port,
    site_id: node.siteId,
    location: { room: node.room, rack: node.rack, unit: node.unit },
    asset_tag: node.assetTag,
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
    provisioned_by: PROVISIONED_BY[node.onboardingMode],
    network_owned_by: node.networkOwnedBy,
    runs_agent: node.runsAgent,
    maas_system_id: maasSystemId,
    generation: node.generation,
    last_agent_contact_at: node.lastAgentContactAt?.toISOString() ?? null,
    agent_version: session?.agentVersion ?? null,
    created_at: node.createdAt.toISOString(),
    updated_at: node.updatedAt.toISOString(),
  };
}

/** The version of a node for the header If-Match counts the changes by people, because the rest of a node changes at each heartbeat. */
export const versionOf = ({ locationVersion }: NodeRow["node"]): string => `location-${locationVersion}`;

export async function mustFindNode(db: Db | Tx, id: NodeId): Promise<NodeRow> {
  const [row] = await listNodeRows(db, { id }, { limit: 1, after: null });
  if (row === undefined) throw new ApiError("not_found", `There is no node ${id}.`);
  return row;
}

const listNodes = readRoute({
  operationId: "listNodes",
  method: "GET",
  path,
  tag,
  summary: "List nodes with filters, a search and an order; deleted nodes only on request",
  permission: "read",
  right: "read_nodes",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    ...nodeFilterQuery,
    sort: NodeSort.default("hostname"),
    include_total: z.enum(["true", "false"]).describe("Also count the nodes of all pages").default("false"),
  }),
  status: 200,
  response: NodeList,
  read: async ({ query, actor, deps }) => {
    const filter = toNodeFilter(query, actor);
    const after = readCursor(query.cursor, cursorOf(query.sort));
    const rows = await listNodeRows(deps.db, filter, { limit: query.limit + 1, after, sort: query.sort });
    const total = query.include_total === "true" ? await countNodes(deps.db, filter) : null;
    return { ...pageOf(rows, query.limit, ({ cursor }) => cursor, toSummary), total };
  },
});

const countNodesByFacet = readRoute({
  operationId: "countNodesByFacet",
  method: "GET",
  path: `${path}/facets`,
  tag,
  summary: "Count the nodes that a list with these filters has, and the nodes for each value of each filter",
  permission: "read",
  right: "read_nodes",
  place: "list",
  query: NodeFilterQuery,
  status: 200,
  response: NodeFacets,
  read: ({ query, actor, deps }) => countFacets(deps.db, toNodeFilter(query, actor)),
});

const toHardware = (details: MachineDetails | Record<string, never>): NonNullable<NodeDetail["maas"]>["hardware"] =>
  isReadInFull(details)
    ? {
        uuid: details.hardware_uuid,
        serial: details.serial,
        board_serial: details.board_serial ?? null,
        chassis_serial: details.chassis_serial ?? null,
        firmware_version: details.firmware_version ?? null,
        zone: details.zone,
        pool: details.pool,
        tags: [...details.tags],
      }
    : null;

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
    const detail = {
      ...toSummary(row),
      readiness: toReadiness(row),
      conditions: conditions.map((condition) => ({
        type: condition.type,
        class: classOf(condition.type),
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        generation: condition.generation,
        source: condition.source,
        observed_at: condition.observedAt.toISOString(),
        received_at: condition.receivedAt.toISOString(),
        changed_at: condition.changedAt.toISOString(),
        expires_at: condition.expiresAt?.toISOString() ?? null,
      })),
      health_overrides: toHealthOverrides(row.overrides),
      baseline: toBaselineState(row.node.generation, await readBaseline(deps.db, row.node.id, row.node.generation)),
      // If an older hub stored an inventory that this version cannot parse, the answer contains no inventory.
      inventory: Inventory.safeParse(inventory).data ?? null,
      adoption: toAdoption(row, await readAdoption(deps.db, row.node.id), conditions),
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
              hardware: toHardware(machine.details),
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
    return new Versioned(detail, versionOf(row.node));
  },
});

export const nodeRoutes = [listNodes, countNodesByFacet, getNode];
