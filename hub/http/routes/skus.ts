import { asc, eq, gt, sql } from "drizzle-orm";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Sku, SkuCreate, SkuId } from "../../../shared/api/sites.ts";
import { type Sku as SkuRow, skus } from "../../db/schema/index.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";

const SkuParams = z.strictObject({ id: SkuId });
const tag = "skus";
const path = "/api/v1/admin/skus";

const toSku = (row: SkuRow): z.input<typeof Sku> => ({
  id: row.id,
  description: row.description,
  gpu_vendor: row.gpuVendor,
  gpu_model: row.gpuModel,
  gpus_total: row.gpusTotal,
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
  body: SkuCreate,
  status: 201,
  response: Sku,
  write: async ({ body }, tx) => {
    const [row] = await tx
      .insert(skus)
      .values({
        id: body.id,
        description: body.description,
        gpuVendor: body.gpu_vendor,
        gpuModel: body.gpu_model,
        gpusTotal: body.gpus_total,
      })
      .onConflictDoNothing()
      .returning();
    if (row === undefined)
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
  query: PageQuery,
  status: 200,
  response: page(Sku),
  read: async ({ query, deps }) => {
    const after = readCursor(query.cursor, 1);
    const rows = await deps.db
      .select()
      .from(skus)
      .where(after === null ? undefined : gt(skus.id, after[0] ?? ""))
      .orderBy(asc(skus.id))
      .limit(query.limit + 1);
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
  params: SkuParams,
  status: 200,
  response: Sku,
  read: async ({ params, deps }) => {
    const [row] = await deps.db.select().from(skus).where(eq(skus.id, params.id));
    if (row === undefined) throw new ApiError("not_found", `There is no SKU ${params.id}.`);
    return toSku(row);
  },
});

const disableSku = writeRoute({
  operationId: "disableSku",
  method: "DELETE",
  path: `${path}/{id}`,
  tag,
  summary: "Disable a SKU: no new onboardings with it",
  permission: "write",
  params: SkuParams,
  status: 204,
  response: z.null(),
  write: async ({ params }, tx) => {
    const rows = await tx
      .update(skus)
      .set({ status: "disabled", updatedAt: sql`now()` })
      .where(eq(skus.id, params.id))
      .returning({ id: skus.id });
    if (rows.length === 0) throw new ApiError("not_found", `There is no SKU ${params.id}.`);
    return { body: null, audit: { target: `skus/${params.id}` } };
  },
});

export const skuRoutes = [createSku, listSkus, getSku, disableSku];
