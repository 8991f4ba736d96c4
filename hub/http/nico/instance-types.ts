import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { pageOfSku, readSkuStock, type SkuStock } from "../../db/queries/sku-stock.ts";
import { toInstanceType } from "../../nico/instance-type.ts";
import { stableId } from "../../nico/stable-id.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { idIn, siteIn } from "./inputs.ts";

const withStats = ({ query }: NicoCall): boolean => query["includeAllocationStats"] === "true";

/** The stocks of the caller's sites, or of the one that the query names, by SKU. */
async function stocksOf({ deps: { db }, actor, query }: NicoCall): Promise<SkuStock[][]> {
  const stocks = await readSkuStock(db, { reach: actor, siteId: siteIn(query) });
  return [...Map.groupBy(stocks, ({ sku }) => sku.id).values()];
}

/** Finds an SKU by the id that is made from its name; an SKU without machines within the caller's reach is unknown to the caller. */
async function mustFind(call: NicoCall): Promise<{ readonly sku: SkuStock["sku"]; readonly stocks: SkuStock[] }> {
  const id = idIn(call.params, z.uuid()).toLowerCase();
  for (const stocks of await stocksOf(call)) {
    const [first] = stocks;
    if (first !== undefined && stableId("sku", first.sku.id) === id) return { sku: first.sku, stocks };
  }
  throw new ApiError("not_found", `There is no instance type ${id} with a machine.`);
}

const list: Endpoint = {
  operationId: "nicoListInstanceTypes",
  method: "GET",
  path: "/instance/type",
  permission: "read",
  right: "read_nodes",
  place: "list",
  status: 200,
  answer: async (call) => {
    const types = await stocksOf(call);
    const { offset, limit } = call.page;
    const shown = types.slice(offset, offset + limit).flatMap((stocks) => {
      const [first] = stocks;
      return first === undefined ? [] : [toInstanceType(first.sku, stocks, withStats(call))];
    });
    return { body: shown, total: types.length };
  },
};

const get: Endpoint = {
  operationId: "nicoGetInstanceType",
  method: "GET",
  path: "/instance/type/{id}",
  permission: "read",
  right: "read_nodes",
  place: "list",
  status: 200,
  answer: async (call) => {
    const { sku, stocks } = await mustFind(call);
    return { body: toInstanceType(sku, stocks, withStats(call)) };
  },
};

const machines: Endpoint = {
  operationId: "nicoListMachinesOfInstanceType",
  method: "GET",
  path: "/instance/type/{id}/machine",
  permission: "read",
  right: "read_nodes",
  place: "list",
  status: 200,
  answer: async (call) => {
    const { sku } = await mustFind(call);
    const of = { reach: call.actor, siteId: siteIn(call.query), skuId: sku.id };
    const page = await pageOfSku(call.deps.db, of, call.page);
    const body = page.machines.map(({ id, createdAt }) => ({
      id,
      machineId: id,
      instanceTypeId: stableId("sku", sku.id),
      created: createdAt.toISOString(),
      updated: createdAt.toISOString(),
    }));
    return { body, total: page.total };
  },
};

export const nicoInstanceTypes = [list, get, machines];
