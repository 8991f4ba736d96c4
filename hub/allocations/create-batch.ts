import { randomBytes } from "node:crypto";
import type { AllocationBatchCreate } from "../../shared/api/allocation-batches.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import { lockUntilCommit } from "../db/advisory-locks.ts";
import { lockNode } from "../db/queries/nodes.ts";
import type { AllocationRow, Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { allocateNode, mustEndLater, wantedNode } from "./create-allocation.ts";
import { obstaclesNow, obstaclesToAllocation, pagesOf, type WantedNode } from "./free-node.ts";
import { type FreeNode, groupsToTake } from "./groups-to-take.ts";

/** The characters of a random suffix of a name. */
const SUFFIX = "abcdefghijkmnpqrstuvwxyz23456789";

/** Returns a random suffix of six characters. 32 characters divide a byte's 256 values evenly, so each is equally likely. */
const suffix = (): string => Array.from(randomBytes(6), (byte) => SUFFIX[byte % SUFFIX.length]).join("");

/**
 * Allocates several free nodes of one SKU and site to a tenant, all or none. If fewer nodes than asked are free, or no rack has as many where the
 * request wants one rack, `createAllocationBatch` throws the ApiError `no_free_node` and writes nothing.
 */
export async function createAllocationBatch(
  tx: Tx,
  { site_id, sku_id, count, same_rack, name_prefix, ...terms }: AllocationBatchCreate,
  createdBy: string,
): Promise<AllocationRow[]> {
  await mustEndLater(tx, terms.ends_at);
  const wanted = await wantedNode(tx, { site_id, sku_id, root: terms.root });
  // Of two batches at once, each of which holds a part of the free nodes, neither would get all it needs.
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

/** Locks as many free nodes as asked, of one rack if `sameRack` is true. */
async function takeFreeNodes(tx: Tx, wanted: WantedNode, count: number, sameRack: boolean): Promise<Node[]> {
  const free: FreeNode[] = [];
  for await (const page of pagesOf(tx, wanted))
    for (const one of page)
      if (obstaclesToAllocation(one, wanted.root).length === 0) {
        const { id, room, rack } = one.row.node;
        free.push({ id, room, rack });
      }
  for (const group of groupsToTake(free, count, sameRack)) {
    const taken = await lockFree(tx, group, wanted.root, count);
    if (taken.length === count) return taken;
  }
  throw tooFewFree(wanted, free, count, sameRack);
}

/** Locks nodes of the group until it has as many as asked. Before a lock was granted, another transaction may have taken the node. */
async function lockFree(tx: Tx, group: readonly NodeId[], root: boolean, count: number): Promise<Node[]> {
  const taken: Node[] = [];
  for (const id of group) {
    if (taken.length === count) break;
    const node = await lockNode(tx, id);
    if (node !== null && (await obstaclesNow(tx, id, root)).length === 0) taken.push(node);
  }
  return taken;
}

function tooFewFree(
  { siteId, siteName, sku }: WantedNode,
  free: readonly FreeNode[],
  count: number,
  sameRack: boolean,
): ApiError {
  const context = { site_id: siteId, sku_id: sku, free: String(free.length), count: String(count) };
  const found = `Site ${siteName} has ${free.length} free nodes of SKU ${sku}`;
  const message =
    sameRack && free.length >= count
      ? `${found}, and no rack has ${count} of them. Ask for fewer nodes, or without same_rack. A node whose rack nobody has set counts for no rack.`
      : `${found}, and the request asks for ${count}. Ask for fewer nodes, release allocations, or take another SKU or site.`;
  return new ApiError("no_free_node", `${message} Nothing was allocated.`, { context });
}
