import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Sku, SkuCreate, SkuId, SkuPatch } from "../../../shared/api/sites.ts";
import {
  changeSku,
  disableSku as disable,
  insertSku,
  listSkusAfter,
  readSku,
  readSkuVersion,
} from "../../db/queries/skus.ts";
import type { Sku as SkuRow } from "../../db/schema/index.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute, Versioned, writeRoute } from "../route.ts";
import { changedMeanwhile, mustMatch, stillThere } from "./rows.ts";

const SkuParams = z.strictObject({ id: SkuId });
const tag = "skus";
const path = "/api/v1/admin/skus";

const toSku = (row: SkuRow): z.input<typeof Sku> => ({
  id: row.id,
  description: row.description,
  gpu_vendor: row.gpuVendor,
  gpu_model: row.gpuModel,
  gpus_total: row.gpusTotal,
  hardware: row.hardware,
  status: row.status,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
});

const createSku = writeRoute({
  operationId: "createSku",
  method: "POST",
  path,
  tag,
  summary: "Create a SKU",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  body: SkuCreate,
  status: 201,
  response: Sku,
  write: async ({ body }, tx) => {
    const row = await insertSku(tx, {
      id: body.id,
      description: body.description,
      gpuVendor: body.gpu_vendor,
      gpuModel: body.gpu_model,
      gpusTotal: body.gpus_total,
      hardware: body.hardware,
    });
    if (row === null)
      throw new ApiError("name_taken", `There is a SKU ${body.id} already.`, {
        errors: [{ pointer: "/id", message: "is taken" }],
      });
    return { body: toSku(row), audit: { target: `skus/${row.id}` } };
  },
});

const listSkus = readRoute({
  operationId: "listSkus",
  method: "GET",
  path,
  tag,
  summary: "List SKUs by id",
  permission: "read",
  right: "read_nodes",
  place: "everywhere",
  query: PageQuery,
  status: 200,
  response: page(Sku),
  read: async ({ query, deps }) => {
    const after = readCursor(query.cursor, 1);
    const rows = await listSkusAfter(deps.db, after === null ? null : (after[0] ?? ""), query.limit + 1);
    return pageOf(rows, query.limit, (sku) => [sku.id], toSku);
  },
});

const getSku = readRoute({
  operationId: "getSku",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a SKU",
  permission: "read",
  right: "read_nodes",
  place: "everywhere",
  params: SkuParams,
  status: 200,
  response: Sku,
  read: async ({ params, deps }) => {
    const row = await readSku(deps.db, params.id);
    if (row === null) throw new ApiError("not_found", `There is no SKU ${params.id}.`);
    return new Versioned(toSku(row), stillThere(await readSkuVersion(deps.db, params.id)));
  },
});

/**
 * The route `updateSku` is the only route that can enable a disabled SKU. A change of a SKU does not affect existing nodes, which keep the SKU's
 * values from the time of their onboarding.
 */
const updateSku = writeRoute({
  operationId: "updateSku",
  method: "PATCH",
  path: `${path}/{id}`,
  tag,
  summary: "Change a SKU, or disable and enable it",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  params: SkuParams,
  body: SkuPatch,
  status: 200,
  response: Sku,
  write: async ({ params, body, ifMatch }, tx) => {
    const expected = mustMatch(ifMatch);
    const changed = await changeSku(tx, params.id, expected, {
      description: body.description,
      gpuVendor: body.gpu_vendor,
      gpuModel: body.gpu_model,
      gpusTotal: body.gpus_total,
      hardware: body.hardware,
      status: body.status,
    });
    const version = stillThere(await readSkuVersion(tx, params.id));
    if (changed === null) throw changedMeanwhile("SKU");
    return { body: new Versioned(toSku(changed), version), audit: { target: `skus/${params.id}`, details: body } };
  },
});

const disableSku = writeRoute({
  operationId: "disableSku",
  method: "DELETE",
  path: `${path}/{id}`,
  tag,
  summary: "Disable a SKU: no new onboardings with it",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  params: SkuParams,
  status: 204,
  response: z.null(),
  write: async ({ params }, tx) => {
    if (!(await disable(tx, params.id))) throw new ApiError("not_found", `There is no SKU ${params.id}.`);
    return { body: null, audit: { target: `skus/${params.id}` } };
  },
});

export const skuRoutes = [createSku, listSkus, getSku, updateSku, disableSku];
