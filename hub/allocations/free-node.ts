import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId, SiteId, WorkflowId } from "../../shared/ids.ts";
import { lockAnyFreeNode } from "../db/queries/free-nodes.ts";
import { listNodeRows, type NodeRow } from "../db/queries/node-reads.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { operationsOfNodes } from "../db/queries/workflow-subjects.ts";
import type { Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { type Obstacle, obstaclesOf } from "../node/schedulable.ts";
import { schedulingFactsOf, turnoverFactsOf } from "../node/scheduling-facts.ts";
import { mayGrantRoot } from "../node/turnover-mode.ts";

export interface Candidate {
  readonly row: NodeRow;
  readonly heldBy: WorkflowId | null;
}

/**
 * Returns all reasons why a node cannot be allocated now, the most important one first. An empty list of reasons means that Muster can allocate the
 * node. A tenant gets root rights only on a node that MAAS can deploy again, or whose profile allows a soft reset after root (decision C4).
 */
export function obstaclesToAllocation({ row, heldBy }: Candidate, root: boolean): Obstacle[] {
  const found = obstaclesOf(schedulingFactsOf(row, root), row.conditions);
  const rank = ({ kind }: Obstacle): number => (kind === "allocated" ? 0 : kind === "held_by_operation" ? 1 : 2);
  if (heldBy !== null) found.push({ kind: "held_by_operation", text: `decommission ${heldBy} holds it` });
  if (root && !mayGrantRoot(turnoverFactsOf(row, root)))
    found.push({
      kind: "root_not_allowed",
      text: "only a node that MAAS can deploy again gets a tenant with root, and its host was installed by hand: ask without root",
    });
  return found.sort((a, b) => rank(a) - rank(b));
}

type Filter = Parameters<typeof listNodeRows>[1];

export async function readCandidates(
  tx: Tx,
  filter: Filter,
  page: { readonly limit: number; readonly after: readonly string[] | null },
): Promise<Candidate[]> {
  const rows = await listNodeRows(tx, filter, page);
  const ids = rows.map(({ node }) => node.id);
  const held = await operationsOfNodes(tx, ids);
  return rows.map((row) => ({ row, heldBy: held.get(row.node.id) ?? null }));
}

export interface WantedNode {
  readonly siteId: SiteId;
  readonly siteName: string;
  readonly sku: string;
  readonly root: boolean;
}

const PAGE = 200;

/**
 * Finds and locks a free node of the SKU at the site. The first pass over the free nodes skips nodes that another transaction has locked, so
 * simultaneous requests for allocations take different nodes. The second pass waits for the locks of the nodes that the first pass skipped, because a
 * locked node may still be free. If no node is free, `takeFreeNode` throws `no_free_node` with the number of nodes for each reason.
 */
export async function takeFreeNode(tx: Tx, wanted: WantedNode): Promise<Node> {
  const census = new Map<NodeId, Obstacle | null>();
  for await (const page of pagesOf(tx, wanted)) {
    for (const one of page) census.set(one.row.node.id, obstaclesToAllocation(one, wanted.root)[0] ?? null);
    const free = await firstFree(tx, page, wanted.root, census);
    if (free !== null) return free;
  }
  for (const [id, obstacle] of census) {
    if (obstacle !== null) continue;
    const node = await lockNode(tx, id);
    const [now] = await obstaclesNow(tx, id, wanted.root);
    if (node !== null && now === undefined) return node;
    census.set(id, now ?? { kind: "deleted", text: "the node is deleted" });
  }
  throw noneFree(wanted, [...census.values()]);
}

/** Reads the nodes of the SKU at the site, sorted by hostname: all of them, or only those that also fit the filter `more`. */
export async function* pagesOf(
  tx: Tx,
  { siteId, sku }: WantedNode,
  more: Filter = {},
): AsyncGenerator<readonly Candidate[]> {
  let after: readonly string[] | null = null;
  do {
    const page: Candidate[] = await readCandidates(tx, { siteId, skus: [sku], ...more }, { limit: PAGE, after });
    yield page;
    const last = page.length < PAGE ? undefined : page.at(-1);
    after = last?.row.cursor ?? null;
  } while (after !== null);
}

/** Locks a free node of `page`, which is one page of the list of nodes. `firstFree` skips nodes that another transaction has locked. */
async function firstFree(
  tx: Tx,
  page: readonly Candidate[],
  root: boolean,
  census: Map<NodeId, Obstacle | null>,
): Promise<Node | null> {
  const free = page.flatMap(({ row }) => (census.get(row.node.id) === null ? [row.node.id] : []));
  for (let left = free; left.length > 0; ) {
    const node = await lockAnyFreeNode(tx, left);
    if (node === null) return null;
    // Before this transaction locked the node, another transaction may have changed a fact that decides whether the node is free.
    const [now] = await obstaclesNow(tx, node.id, root);
    if (now === undefined) return node;
    census.set(node.id, now);
    left = left.filter((id) => id !== node.id);
  }
  return null;
}

async function obstaclesNow(tx: Tx, id: NodeId, root: boolean): Promise<Obstacle[]> {
  const [candidate] = await readCandidates(tx, { id }, { limit: 1, after: null });
  return candidate === undefined
    ? [{ kind: "deleted", text: "the node is deleted" }]
    : obstaclesToAllocation(candidate, root);
}

function noneFree({ siteId, siteName, sku }: WantedNode, obstacles: readonly (Obstacle | null)[]): ApiError {
  const counts = new Map<string, number>();
  for (const kind of obstacles.map((one) => one?.kind ?? "unknown")) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const words = [...counts].map(([kind, count]) => `${count} ${kind.replaceAll("_", " ")}`);
  const message =
    obstacles.length === 0
      ? `Site ${siteName} has no node of SKU ${sku}. Onboard a host of this SKU, or ask for another SKU or site.`
      : `SKU ${sku} has ${obstacles.length} nodes at site ${siteName}, and none is free: ${words.join(", ")}. Release an allocation, bring a node back into service, or ask for another SKU or site.`;
  const context = { site_id: siteId, sku_id: sku, nodes: String(obstacles.length) };
  const byReason = Object.fromEntries([...counts].map(([kind, count]) => [kind, String(count)]));
  return new ApiError("no_free_node", message, { context: { ...context, ...byReason } });
}
