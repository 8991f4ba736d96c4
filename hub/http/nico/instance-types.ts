import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { countSkuStock, listSkusAtSites, pageOfSku, type SkuAtSite } from "../../db/queries/sku-stock.ts";
import type { Sku } from "../../db/schema/index.ts";
import { toInstanceType } from "../../nico/instance-type.ts";
import { stableId } from "../../nico/stable-id.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { idIn, siteIn } from "./inputs.ts";

const placeOf = ({ actor, query }: NicoCall) => ({ reach: actor, siteId: siteIn(query) });

/** The SKUs that have machines at the caller's sites, or at the one site that the request's query names, each with its sites. */
async function typesOf(call: NicoCall): Promise<{ readonly sku: Sku; readonly places: SkuAtSite[] }[]> {
  const bySku = Map.groupBy(await listSkusAtSites(call.deps.db, placeOf(call)), ({ sku }) => sku.id);
  return [...bySku.values()].flatMap((places) => places.slice(0, 1).map(({ sku }) => ({ sku, places })));
}

/** Finds an SKU by the id that is made from its name; an SKU without machines within the caller's reach is unknown to the caller. */
async function mustFind(call: NicoCall) {
  const id = idIn(call.params, z.uuid()).toLowerCase();
  const type = (await typesOf(call)).find(({ sku }) => stableId("sku", sku.id) === id);
  if (type === undefined) throw new ApiError("not_found", `There is no instance type ${id} with a machine.`);
  return type;
}

async function shown(call: NicoCall, types: readonly { readonly sku: Sku; readonly places: readonly SkuAtSite[] }[]) {
  const isAsked = call.query["includeAllocationStats"] === "true";
  const stocks = isAsked ? await countSkuStock(call.deps.db, placeOf(call)) : null;
  return types.map(({ sku, places }) =>
    toInstanceType(sku, places, stocks?.filter(({ skuId }) => skuId === sku.id) ?? null),
  );
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
    const types = await typesOf(call);
    const { offset, limit } = call.page;
    return { body: await shown(call, types.slice(offset, offset + limit)), total: types.length };
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
  answer: async (call) => ({ body: (await shown(call, [await mustFind(call)]))[0] }),
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
    const page = await pageOfSku(call.deps.db, { ...placeOf(call), skuId: sku.id }, call.page);
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
