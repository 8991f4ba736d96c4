import { randomBytes } from "node:crypto";
import type { AllocationBatchCreate } from "../../shared/api/allocation-batches.ts";
import { ApiError } from "../../shared/api/errors.ts";
import { lockUntilCommit } from "../db/advisory-locks.ts";
import { lockFreeNodes } from "../db/queries/free-nodes.ts";
import type { AllocationRow, Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { allocateNode, mustEndLater, wantedNode } from "./create-allocation.ts";
import { type Candidate, obstaclesToAllocation, pagesOf, readCandidates, type WantedNode } from "./free-node.ts";
import { type FreeNode, groupsToTake } from "./groups-to-take.ts";

/** The characters of a random suffix of a name. */
const SUFFIX = "abcdefghijkmnpqrstuvwxyz23456789";

/** Returns a random suffix of six characters. 32 characters divide a byte's 256 values evenly, so each is equally likely. */
const suffix = (): string => Array.from(randomBytes(6), (byte) => SUFFIX[byte % SUFFIX.length]).join("");

/**
 * Allocates several free nodes of one SKU and site to a tenant, all or none. If fewer nodes are free than the request asks for, or if the request
 * wants one rack and no rack has enough free nodes, `createAllocationBatch` throws the ApiError `no_free_node` and writes nothing.
 */
export async function createAllocationBatch(
  tx: Tx,
  { site_id, sku_id, count, same_rack, name_prefix, ...terms }: AllocationBatchCreate,
  createdBy: string,
): Promise<AllocationRow[]> {
  await mustEndLater(tx, terms.ends_at);
  const wanted = await wantedNode(tx, { site_id, sku_id, root: terms.root });
  // Batches run one after the other: two simultaneous batches could each lock a part of the free nodes, and neither would get all it needs.
  await lockUntilCommit(tx, "allocation_batch", `${site_id}/${sku_id}`);
  const nodes = await takeFreeNodes(tx, wanted, count, same_rack);
  const rows: AllocationRow[] = [];
  for (const node of nodes) {
    const name = name_prefix === null ? null : `${name_prefix}-${suffix()}`;
    const request = { ...terms, name, allow_unhealthy_machine: false };
    rows.push(await allocateNode(tx, request, createdBy, { node, despite: [] }));
  }
  return rows;
}

/**
 * For a batch of allocations, the hub lists this number of free nodes more than requested, because other requests may take some before it has locked
 * them.
 */
const RESERVE = 16;

/** Locks as many free nodes as asked, of one rack if `sameRack` is true. */
async function takeFreeNodes(tx: Tx, wanted: WantedNode, count: number, sameRack: boolean): Promise<Node[]> {
  const free = await listFree(tx, wanted, sameRack ? Number.POSITIVE_INFINITY : count + RESERVE);
  for (const group of groupsToTake(free, count, sameRack)) {
    const taken = await lockFree(tx, group, wanted, count);
    if (taken.length === count) return taken;
  }
  throw tooFewFree(wanted, free.length, count, sameRack);
}

async function listFree(tx: Tx, wanted: WantedNode, most: number): Promise<FreeNode[]> {
  const free: FreeNode[] = [];
  // PostgreSQL leaves out the nodes that may take no tenant at all, which are most nodes of a busy site.
  for await (const page of pagesOf(tx, wanted, { schedulable: true })) {
    free.push(...page.filter((one) => isFree(one, wanted)).map(({ row: { node } }) => node));
    if (free.length >= most) break;
  }
  return free;
}

const isFree = (one: Candidate, { root }: WantedNode): boolean => obstaclesToAllocation(one, root).length === 0;

/**
 * Locks free nodes of the group until `count` nodes are locked: first those that no other transaction has locked, then it waits for the locks of the
 * rest. Before a lock was granted, another transaction may have taken the node, or moved it to another rack.
 */
async function lockFree(tx: Tx, group: readonly FreeNode[], wanted: WantedNode, count: number): Promise<Node[]> {
  const taken: Node[] = [];
  for (const skipLocked of [true, false]) {
    const left = group.filter(({ id }) => !taken.some((node) => node.id === id));
    if (taken.length === count || left.length === 0) break;
    const ids = await lockFreeNodes(
      tx,
      left.map(({ id }) => id),
      skipLocked,
    );
    const now = await readCandidates(
      tx,
      { ids, siteId: wanted.siteId, skus: [wanted.sku] },
      { limit: ids.length + 1, after: null },
    );
    const isWhereItWas = ({ row: { node } }: Candidate): boolean =>
      left.some(({ id, room, rack }) => id === node.id && room === node.room && rack === node.rack);
    const good = now.filter((one) => isFree(one, wanted) && isWhereItWas(one));
    taken.push(...good.map(({ row: { node } }) => node).slice(0, count - taken.length));
  }
  return taken;
}

function tooFewFree({ siteId, siteName, sku }: WantedNode, free: number, count: number, sameRack: boolean): ApiError {
  const context = { site_id: siteId, sku_id: sku, free: String(free), count: String(count) };
  const found = `Site ${siteName} has ${free} free nodes of SKU ${sku}`;
  const why =
    free < count
      ? `${found}, and the request asks for ${count}. Ask for fewer nodes, release allocations, or take another SKU or site.`
      : sameRack
        ? `${found}, and no rack has ${count} of them. Ask for fewer nodes, or for nodes of several racks. A node whose rack nobody has set counts for no rack.`
        : `${found} no longer: other requests took some of them at the same time. Try again.`;
  return new ApiError("no_free_node", `${why} Nothing was allocated.`, { context });
}
