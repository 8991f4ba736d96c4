import type { NodeId, SiteId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { and, asc, desc, eq, ne, sql } from "../orm.ts";
import {
  type AgentSession,
  agentSessions,
  type MaasMachineRow,
  maasMachines,
  type Node,
  type NodeEventRow,
  type NodeHealthOverride,
  nodeBaselines,
  nodeEvents,
  nodeInventories,
  nodeMaasState,
  nodes,
  type Sku,
  skus,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { type OpenAllocation, openAllocationsOf } from "./allocations.ts";
import { closedHosts } from "./closed-hosts.ts";
import { baselineLack } from "./node-baselines.ts";
import { type ConditionNow, listConditions, readConditionFacts } from "./node-conditions.ts";
import { listHealthOverrides } from "./node-health-overrides.ts";
import { type TurnoverPolicy, turnoverPolicies } from "./node-profiles.ts";
import { hostnameBegins } from "./node-selection.ts";
import { EVERYWHERE, isWithin, type Reach } from "./reach.ts";

export interface NodeRow {
  readonly node: Node;
  readonly session: Pick<AgentSession, "agentVersion"> | null;
  readonly maasSystemId: string | null;
  readonly conditions: readonly Omit<ConditionNow, "message">[];
  readonly hostClosed: boolean;
  readonly overrides: readonly NodeHealthOverride[];
  readonly allocation: OpenAllocation | null;
  /** The residue items that the baseline of the node's present generation lacks; null if the node has no baseline (architecture 14.4). */
  readonly baselineLack: readonly string[] | null;
  /** The rules of the node's profile for cleaning the node after a tenant; null for a node without a profile. */
  readonly policy: TurnoverPolicy | null;
  /** The GPU vendor of the node's SKU; null if the hub does not know the SKU. */
  readonly gpuVendor: Sku["gpuVendor"] | null;
}

const EVENTS_SHOWN = 50;

/** `listNodeRows` needs six SQL statements for a page of any length. */
export async function listNodeRows(
  db: Db | Tx,
  filter: {
    status?: NodeStatus | undefined;
    siteId?: SiteId | undefined;
    sku?: string | undefined;
    hostname?: string | undefined;
    hostnamePrefix?: string | undefined;
    id?: NodeId | undefined;
    /** A list of nodes that is filtered by id or by status always includes deleted nodes, whatever `deleted` says. */
    deleted?: boolean;
    /** The reach of the caller who asks; without `reach`, the nodes of all sites. */
    reach?: Reach;
  },
  page: { limit: number; after: readonly string[] | null },
): Promise<NodeRow[]> {
  const rows = await db
    .select({
      node: nodes,
      session: { agentVersion: agentSessions.agentVersion },
      maasSystemId: nodeMaasState.maasSystemId,
      baselineLack,
      gpuVendor: skus.gpuVendor,
    })
    .from(nodes)
    .leftJoin(agentSessions, eq(agentSessions.nodeId, nodes.id))
    .leftJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
    .leftJoin(skus, eq(skus.id, nodes.sku))
    .leftJoin(nodeBaselines, and(eq(nodeBaselines.nodeId, nodes.id), eq(nodeBaselines.generation, nodes.generation)))
    .where(
      and(
        filter.status === undefined ? undefined : eq(nodes.status, filter.status),
        filter.deleted === true || filter.status !== undefined || filter.id !== undefined
          ? undefined
          : ne(nodes.status, "deleted"),
        filter.siteId === undefined ? undefined : eq(nodes.siteId, filter.siteId),
        isWithin(filter.reach ?? EVERYWHERE, { site: nodes.siteId }),
        filter.sku === undefined ? undefined : eq(nodes.sku, filter.sku),
        filter.hostname === undefined ? undefined : eq(nodes.hostname, filter.hostname),
        filter.hostnamePrefix === undefined ? undefined : hostnameBegins(filter.hostnamePrefix),
        filter.id === undefined ? undefined : eq(nodes.id, filter.id),
        page.after === null
          ? undefined
          : sql`(${nodes.hostname}, ${nodes.id}::text) > (${page.after[0] ?? ""}, ${page.after[1] ?? ""})`,
      ),
    )
    .orderBy(asc(nodes.hostname), asc(sql`${nodes.id}::text`))
    .limit(page.limit);
  const ids = rows.map((row) => row.node.id);
  const conditions = await readConditionFacts(db, ids);
  const closed = await closedHosts(db, ids);
  const allocations = await openAllocationsOf(db, ids);
  const policies = await turnoverPolicies(db, ids);
  const overrides = await listHealthOverrides(db, ids);
  return rows.map((row) => ({
    ...row,
    hostClosed: closed.has(row.node.id),
    allocation: allocations.get(row.node.id) ?? null,
    policy: policies.get(row.node.id) ?? null,
    overrides: overrides.filter(({ nodeId }) => nodeId === row.node.id),
    conditions: conditions.filter((condition) => condition.nodeId === row.node.id),
  }));
}

export interface NodeDetails {
  readonly conditions: readonly ConditionNow[];
  readonly inventory: unknown;
  readonly machine: MaasMachineRow | null;
  readonly events: readonly NodeEventRow[];
}

export async function readNodeDetails(db: Db, node: Node, maasSystemId: string | null): Promise<NodeDetails> {
  const [inventory] = await db
    .select({ inventory: nodeInventories.inventory })
    .from(nodeInventories)
    .where(eq(nodeInventories.nodeId, node.id));
  const [machine] =
    maasSystemId === null || node.siteId === null
      ? []
      : await db
          .select()
          .from(maasMachines)
          .where(and(eq(maasMachines.siteId, node.siteId), eq(maasMachines.systemId, maasSystemId)));
  const events = await db
    .select()
    .from(nodeEvents)
    .where(eq(nodeEvents.nodeId, node.id))
    .orderBy(desc(nodeEvents.id))
    .limit(EVENTS_SHOWN);
  const conditions = await listConditions(db, node.id);
  return { conditions, inventory: inventory?.inventory ?? null, machine: machine ?? null, events };
}
