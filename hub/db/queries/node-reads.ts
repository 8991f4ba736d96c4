import type { NodeSort } from "../../../shared/api/node-filter.ts";
import { and, count, desc, eq, inArray, sql } from "../orm.ts";
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
  type PowerAction,
  type Sku,
  skus,
} from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";
import { type OpenAllocation, openAllocationsOf } from "./allocations.ts";
import { closedHosts } from "./closed-hosts.ts";
import { pastIsUnknown } from "./node-adoptions.ts";
import { baselineLack } from "./node-baselines.ts";
import { type ConditionNow, listConditions, readConditionFacts } from "./node-conditions.ts";
import { matches, type NodeFilter } from "./node-filter.ts";
import { listHealthOverrides } from "./node-health-overrides.ts";
import { type NodePolicy, nodePolicies, typesIn } from "./node-profiles.ts";
import { cursorSql, isAfter, orderSql } from "./node-sorts.ts";
import { newestPowerActions } from "./power-actions.ts";
import { type OpenRepair, openRepairsOf } from "./repair-cases.ts";

export interface NodeRow {
  readonly node: Node;
  readonly session: Pick<AgentSession, "agentVersion"> | null;
  readonly maasSystemId: string | null;
  readonly conditions: readonly Omit<ConditionNow, "message">[];
  readonly hostClosed: boolean;
  readonly overrides: readonly NodeHealthOverride[];
  readonly allocation: OpenAllocation | null;
  /** The node's open repair case. */
  readonly repair: OpenRepair | null;
  /** The newest request for the power of the node's machine. */
  readonly power: PowerAction | null;
  readonly pastUnknown: boolean;
  /**
   * The items of the host's state that a soft reset compares but that the node's baseline, the snapshot of its clean system, lacks; null without such
   * a snapshot (architecture 14.4).
   */
  readonly baselineLack: readonly string[] | null;
  /** The rules of the node's profile for the node's readiness and its cleaning after a tenant; null for a node without a profile. */
  readonly policy: NodePolicy | null;
  /** The time of the database at which the node was read. */
  readonly now: Date;
  /** The GPU vendor of the node's SKU; null if the hub does not know the SKU. */
  readonly gpuVendor: Sku["gpuVendor"] | null;
  /** The cursor of the page that follows this node in the sort order of the list of nodes. */
  readonly cursor: readonly string[];
}

export interface NodePage {
  readonly limit: number;
  /** The cursor after which the page of the list of nodes begins, in the list's sort order; null for the first page. */
  readonly after: readonly string[] | null;
  readonly sort?: NodeSort;
}

const EVENTS_SHOWN = 50;

/**
 * `listNodeRows` needs eight SQL statements for a page of any length. The first statement finds the nodes of the page before it joins their facts, because
 * PostgreSQL would otherwise join the facts of the whole fleet.
 */
export async function listNodeRows(
  db: Db | Tx,
  filter: NodeFilter,
  { limit, after, sort = "hostname" }: NodePage,
): Promise<NodeRow[]> {
  const order = orderSql(sort);
  const page = db
    .select({ id: nodes.id })
    .from(nodes)
    .where(and(matches(filter), after === null ? undefined : isAfter(sort, after)))
    .orderBy(...order)
    .limit(limit);
  const rows = await db
    .select({
      node: nodes,
      session: { agentVersion: agentSessions.agentVersion },
      maasSystemId: nodeMaasState.maasSystemId,
      baselineLack,
      pastUnknown: pastIsUnknown(sql`${nodes.id}`),
      gpuVendor: skus.gpuVendor,
      now: sql`now()`.mapWith(toDate),
      cursor: cursorSql(sort),
    })
    .from(nodes)
    .leftJoin(agentSessions, eq(agentSessions.nodeId, nodes.id))
    .leftJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
    .leftJoin(skus, eq(skus.id, nodes.sku))
    .leftJoin(nodeBaselines, and(eq(nodeBaselines.nodeId, nodes.id), eq(nodeBaselines.generation, nodes.generation)))
    .where(inArray(nodes.id, page))
    .orderBy(...order);
  const ids = rows.map((row) => row.node.id);
  const policies = await nodePolicies(db, ids);
  const conditions = await readConditionFacts(db, ids, typesIn(policies.values()));
  const closed = await closedHosts(db, ids);
  const allocations = await openAllocationsOf(db, ids);
  const overrides = await listHealthOverrides(db, ids);
  const repairs = await openRepairsOf(db, ids);
  const powers = await newestPowerActions(db, ids);
  return rows.map((row) => ({
    ...row,
    hostClosed: closed.has(row.node.id),
    allocation: allocations.get(row.node.id) ?? null,
    repair: repairs.get(row.node.id) ?? null,
    power: powers.get(row.node.id) ?? null,
    policy: policies.get(row.node.id) ?? null,
    overrides: overrides.filter(({ nodeId }) => nodeId === row.node.id),
    conditions: conditions.filter((condition) => condition.nodeId === row.node.id),
  }));
}

export async function countNodes(db: Db | Tx, filter: NodeFilter): Promise<number> {
  const [row] = await db.select({ nodes: count() }).from(nodes).where(matches(filter));
  return row?.nodes ?? 0;
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
