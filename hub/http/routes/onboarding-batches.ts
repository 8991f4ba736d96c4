import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { Batch, BatchDetail, BatchVerbResult, page } from "../../../shared/api/onboardings.ts";
import { FAILURE_CLASSES } from "../../../shared/failures.ts";
import { BatchId, SiteId } from "../../../shared/ids.ts";
import { listBatches, readBatch } from "../../db/queries/onboarding-batches.ts";
import { cancelBatch, recoverBatch } from "../../workflows/onboarding/batch-verbs.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";

const BatchParams = z.strictObject({ id: BatchId });
const path = "/api/v1/admin/onboarding-batches";
const tag = "onboardings";
const reason = z.string().min(1).max(512);

const listOnboardingBatches = readRoute({
  operationId: "listOnboardingBatches",
  method: "GET",
  path,
  tag,
  summary: "List batches, newest first, with how many hosts succeeded and failed",
  permission: "read",
  query: z.strictObject({ ...pageQuery, site_id: SiteId.optional() }),
  status: 200,
  response: page(Batch),
  read: async ({ query, deps }) => {
    const rows = await listBatches(
      deps.db,
      { siteId: query.site_id },
      { before: readBefore(query.cursor), limit: query.limit + 1 },
    );
    return pageOf(
      rows,
      query.limit,
      ({ batch, at }) => [at, batch.batch_id],
      ({ batch }) => batch,
    );
  },
});

const getOnboardingBatch = readRoute({
  operationId: "getOnboardingBatch",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a batch: its counts, and its failures grouped by code and next action",
  permission: "read",
  params: BatchParams,
  status: 200,
  response: BatchDetail,
  read: async ({ params, deps }) => {
    const batch = await readBatch(deps.db, params.id);
    if (batch === null) throw new ApiError("not_found", `There is no onboarding batch ${params.id}.`);
    return batch;
  },
});

const cancel = writeRoute({
  operationId: "cancelOnboardingBatch",
  method: "POST",
  path: `${path}/{id}/cancel`,
  tag,
  summary: "Cancel the unfinished hosts of a batch, and with failed also the failed ones",
  permission: "write",
  params: BatchParams,
  body: z.strictObject({ reason, failed: z.boolean().default(false) }),
  status: 200,
  response: BatchVerbResult,
  // Cancels the batch's onboardings in separate transactions of a few hosts each (see `cancelBatch`). The transaction of the cancel route itself
  // writes only the audit row.
  before: async ({ params, body, actor, requestId, deps }) => {
    const by = { actor: actor.name, role: actor.role, reason: body.reason, requestId };
    return cancelBatch(deps.inTx, deps.workflows, params.id, { ...by, failed: body.failed });
  },
  write: async ({ body }, _tx, result) => ({ body: result, audit: auditOf(result, body) }),
});

const recover = writeRoute({
  operationId: "recoverOnboardingBatch",
  method: "POST",
  path: `${path}/{id}/recover`,
  tag,
  summary: "Recover the failed hosts of a batch, each by the verb that its failure recommends",
  permission: "write",
  params: BatchParams,
  body: z.strictObject({ reason, failure_class: z.enum(FAILURE_CLASSES as [string, ...string[]]).optional() }),
  status: 200,
  response: BatchVerbResult,
  // Recovers the batch's onboardings in separate transactions of a few hosts each (see `recoverBatch`). The transaction of the recover route itself
  // writes only the audit row.
  before: async ({ params, body, actor, requestId, deps }) => {
    const by = { actor: actor.name, role: actor.role, reason: body.reason, requestId };
    return recoverBatch(deps.inTx, deps.workflows, params.id, { ...by, failureClass: body.failure_class });
  },
  write: async ({ body }, _tx, result) => ({ body: result, audit: auditOf(result, body) }),
});

const auditOf = (result: BatchVerbResult, body: { readonly reason: string }) => ({
  target: `onboarding-batches/${result.batch_id}`,
  reason: body.reason,
  details: { applied: result.applied, skipped: result.skipped },
});

export const onboardingBatchRoutes = [listOnboardingBatches, getOnboardingBatch, cancel, recover];
