import { z } from "zod";
import { Batch, BatchDetail, type BatchKind, BatchVerbResult } from "../../../shared/api/batches.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { FAILURE_CLASSES } from "../../../shared/failures.ts";
import { BatchId, SiteId } from "../../../shared/ids.ts";
import { listBatches, readBatch } from "../../db/queries/batches.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { cancelBatch, recoverBatch } from "../../workflows/engine/batch-verbs.ts";
import { pauseBatch, resumeBatch } from "../../workflows/engine/pause-batch.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { type Route, readRoute, sourceOf, writeRoute } from "../route.ts";

const BatchParams = z.strictObject({ id: BatchId });
const reason = z.string().min(1).max(512);

/** The names that the API uses for the batches of one kind, for example of onboardings. */
interface Named {
  readonly kind: BatchKind;
  /** The last part of the batch routes' operation ids, for example `OnboardingBatch` in `cancelOnboardingBatch`. */
  readonly what: string;
  readonly path: string;
  readonly tag: string;
}

const auditOf = ({ kind }: Named, result: BatchVerbResult, body: { readonly reason: string }) => ({
  target: `${kind}-batches/${result.batch_id}`,
  reason: body.reason,
  details: { applied: result.applied, skipped: result.skipped },
});

async function mustRead(db: Db | Tx, { kind }: Pick<Named, "kind">, id: BatchId): Promise<BatchDetail> {
  const batch = await readBatch(db, kind, id);
  if (batch === null) throw new ApiError("not_found", `There is no ${kind} batch ${id}.`);
  return batch;
}

const list = ({ kind, what, path, tag }: Named): Route =>
  readRoute({
    operationId: `list${what}Batches`,
    method: "GET",
    path,
    tag,
    summary: `List batches of ${tag}, newest first, with how many hosts succeeded and failed`,
    permission: "read",
    right: "read_fleet",
    place: "list",
    query: z.strictObject({ ...pageQuery, site_id: SiteId.optional() }),
    status: 200,
    response: page(Batch),
    read: async ({ query, actor, deps }) => {
      const rows = await listBatches(
        deps.db,
        kind,
        { siteId: query.site_id, reach: actor },
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

const get = ({ kind, what, path, tag }: Named): Route =>
  readRoute({
    operationId: `get${what}Batch`,
    method: "GET",
    path: `${path}/{id}`,
    tag,
    summary: `Read a batch of ${tag}: its counts, and its failures grouped by code and next action`,
    permission: "read",
    right: "read_fleet",
    place: { of: `${kind}_batch`, param: "id" },
    params: BatchParams,
    status: 200,
    response: BatchDetail,
    read: ({ params, deps }) => mustRead(deps.db, { kind }, params.id),
  });

const cancel = (named: Named): Route =>
  writeRoute({
    operationId: `cancel${named.what}Batch`,
    method: "POST",
    path: `${named.path}/{id}/cancel`,
    tag: named.tag,
    summary: `Cancel the unfinished ${named.tag} of a batch, and with failed also the failed ones`,
    permission: "write",
    right: "operate_nodes",
    place: { of: `${named.kind}_batch`, param: "id" },
    params: BatchParams,
    body: z.strictObject({ reason, failed: z.boolean().default(false) }),
    status: 200,
    response: BatchVerbResult,
    // `cancelBatch` cancels the batch's operations in separate transactions of a few hosts each. The transaction of the route that cancels a batch
    // writes only the audit row.
    before: async (call) => {
      const { params, body, deps } = call;
      const by = { ...sourceOf(call), reason: body.reason };
      const batch = { kind: named.kind, id: params.id };
      return cancelBatch(deps.inTx, deps.workflows, batch, { ...by, failed: body.failed });
    },
    write: async ({ body }, _tx, result) => ({ body: result, audit: auditOf(named, result, body) }),
  });

const recover = (named: Named): Route =>
  writeRoute({
    operationId: `recover${named.what}Batch`,
    method: "POST",
    path: `${named.path}/{id}/recover`,
    tag: named.tag,
    summary: `Recover the failed ${named.tag} of a batch, each by the verb that its failure recommends`,
    permission: "write",
    right: "operate_nodes",
    place: { of: `${named.kind}_batch`, param: "id" },
    params: BatchParams,
    body: z.strictObject({ reason, failure_class: z.enum(FAILURE_CLASSES as [string, ...string[]]).optional() }),
    status: 200,
    response: BatchVerbResult,
    // `recoverBatch` recovers the batch's operations in separate transactions of a few hosts each. The transaction of the route that recovers a batch
    // writes only the audit row.
    before: async (call) => {
      const { params, body, deps } = call;
      const by = { ...sourceOf(call), reason: body.reason };
      const batch = { kind: named.kind, id: params.id };
      return recoverBatch(deps.inTx, deps.workflows, batch, { ...by, failureClass: body.failure_class });
    },
    write: async ({ body }, _tx, result) => ({ body: result, audit: auditOf(named, result, body) }),
  });

const pausing = (named: Named, verb: "pause" | "resume"): Route =>
  writeRoute({
    operationId: `${verb}${named.what}Batch`,
    method: "POST",
    path: `${named.path}/{id}/${verb}`,
    tag: named.tag,
    summary:
      verb === "pause"
        ? `Begin no further ${named.tag} of a batch until it is resumed; those that have begun go on`
        : `Begin the waiting ${named.tag} of a paused batch again, after a person or its failures paused it`,
    permission: "write",
    right: "operate_nodes",
    place: { of: `${named.kind}_batch`, param: "id" },
    params: BatchParams,
    body: z.strictObject({ reason }),
    status: 200,
    response: BatchDetail,
    write: async ({ params, body, actor }, tx) => {
      const about = { kind: named.kind, id: params.id };
      const by = { actor: actor.name, reason: body.reason };
      const prior = await mustRead(tx, named, params.id);
      await (verb === "pause" ? pauseBatch : resumeBatch)(tx, about, by);
      const now = await mustRead(tx, named, params.id);
      const details = { prior: { paused: prior.paused }, expected: { paused: now.paused }, counts: now.counts };
      return { body: now, audit: { target: `${named.kind}-batches/${params.id}`, reason: body.reason, details } };
    },
  });

/**
 * The routes that both kinds of batches, onboardings and decommissions, have in common. Each kind of batch has its own route that creates a batch.
 */
const routesOf = (kind: BatchKind, what: string): Route[] => {
  const named = { kind, what, path: `/api/v1/admin/${kind}-batches`, tag: `${kind}s` };
  return [list(named), get(named), cancel(named), recover(named), pausing(named, "pause"), pausing(named, "resume")];
};

export const batchRoutes = [...routesOf("onboarding", "Onboarding"), ...routesOf("decommission", "Decommission")];
