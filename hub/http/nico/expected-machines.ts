import { isReadInFull } from "../../../shared/machine-details.ts";
import { machinesOf } from "../../db/queries/machine-pages.ts";
import type { NodeRow } from "../../db/queries/node-reads.ts";
import type { MaasMachineRow } from "../../db/schema/index.ts";
import { stableId } from "../../nico/stable-id.ts";
import type { Endpoint } from "./endpoint.ts";
import { siteIn } from "./inputs.ts";
import { nodesOnPage } from "./machines.ts";

/** In NICo's list of expected machines, a node that has not enrolled yet has no machine, because nobody has seen its host. */
const isSeen = ({ node }: NodeRow): boolean => node.status !== "bootstrap_issued";

function toExpected(row: NodeRow, machine: MaasMachineRow | undefined) {
  const { node } = row;
  return {
    id: stableId("expected", node.id),
    siteId: node.siteId,
    machineId: isSeen(row) ? node.id : null,
    name: node.hostname,
    bmcMacAddress: null,
    chassisSerialNumber:
      machine !== undefined && isReadInFull(machine.details) ? (machine.details.chassis_serial ?? null) : null,
    rackId: node.rack,
    skuId: node.sku,
    labels: {},
    description: null,
    created: node.createdAt.toISOString(),
    updated: node.updatedAt.toISOString(),
  };
}

/** Lists as NICo's expected machines all nodes that are not deleted. */
const list: Endpoint = {
  operationId: "nicoListExpectedMachines",
  method: "GET",
  path: "/expected-machine",
  permission: "read",
  right: "read_nodes",
  place: "list",
  status: 200,
  answer: async ({ deps: { db }, actor, query, page }) => {
    const { rows, total } = await nodesOnPage(db, { reach: actor, siteId: siteIn(query) }, page);
    const machines = await machinesOf(
      db,
      rows.map(({ node }) => node.id),
    );
    return { body: rows.map((row) => toExpected(row, machines.get(row.node.id))), total };
  },
};

export const nicoExpectedMachines = [list];
