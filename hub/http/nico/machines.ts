import { ApiError } from "../../../shared/api/errors.ts";
import { NodeId, type SiteId } from "../../../shared/ids.ts";
import { type MachinePage, pageOfMachines, readHistories, readMachineRecords } from "../../db/queries/machine-pages.ts";
import { listNodeRows, type NodeRow } from "../../db/queries/node-reads.ts";
import type { Reach } from "../../db/queries/reach.ts";
import type { Db } from "../../db/tx.ts";
import { toMachine, toStatusDetail } from "../../nico/machine.ts";
import { historyOf } from "../../node/machine-history.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { idIn, siteIn } from "./inputs.ts";

/**
 * Returns the nodes of one page of NICo's list of machines, in the order of the page. If a node is deleted after the query for the ids of the page,
 * the result lacks this node.
 */
export async function nodesOnPage(
  db: Db,
  of: { readonly reach: Reach; readonly siteId: SiteId | undefined },
  page: MachinePage,
): Promise<{ rows: NodeRow[]; total: number }> {
  const { ids, total } = await pageOfMachines(db, of, page);
  const found = await listNodeRows(db, { ids }, { limit: Math.max(ids.length, 1), after: null });
  const byId = new Map(found.map((row) => [row.node.id, row]));
  return { rows: ids.flatMap((id) => byId.get(id) ?? []), total };
}

async function mustFindRow(db: Db, id: NodeId): Promise<NodeRow> {
  const [row] = await listNodeRows(db, { id }, { limit: 1, after: null });
  if (row === undefined) throw new ApiError("not_found", `There is no machine ${id}.`);
  return row;
}

const withMetadata = ({ query }: NicoCall): boolean => query["includeMetadata"] === "true";

const list: Endpoint = {
  operationId: "nicoListMachines",
  method: "GET",
  path: "/machine",
  permission: "read",
  right: "read_nodes",
  place: "list",
  status: 200,
  answer: async (call) => {
    const { db } = call.deps;
    const { rows, total } = await nodesOnPage(db, { reach: call.actor, siteId: siteIn(call.query) }, call.page);
    const ids = rows.map(({ node }) => node.id);
    const records = await readMachineRecords(db, ids);
    return { body: rows.map((row) => toMachine(row, records, withMetadata(call))), total };
  },
};

const get: Endpoint = {
  operationId: "nicoGetMachine",
  method: "GET",
  path: "/machine/{id}",
  permission: "read",
  right: "read_nodes",
  place: { of: "node", param: "id" },
  status: 200,
  answer: async (call) => ({ body: await readOneMachine(call, idIn(call.params, NodeId)) }),
};

export async function readOneMachine(call: NicoCall, id: NodeId) {
  const { db } = call.deps;
  const row = await mustFindRow(db, id);
  return toMachine(row, await readMachineRecords(db, [row.node.id]), withMetadata(call));
}

const history: Endpoint = {
  operationId: "nicoGetMachineStatusHistory",
  method: "GET",
  path: "/machine/{id}/status-history",
  permission: "read",
  right: "read_nodes",
  place: { of: "node", param: "id" },
  status: 200,
  answer: async ({ deps: { db }, params, page }) => {
    const { node } = await mustFindRow(db, idIn(params, NodeId));
    const all = historyOf(node.id, await readHistories(db, [node.id])).toReversed();
    return { body: all.slice(page.offset, page.offset + page.limit).map(toStatusDetail), total: all.length };
  },
};

export const nicoMachines = [list, get, history];
