import { type BatchKind, type BatchVerbResult, operationIdsOf } from "../../../shared/api/batches.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import type { BatchId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { FAILED_WORKFLOW_STATUSES, type WorkflowStatus } from "../../../shared/workflow-status.ts";
import { type BatchHost, listBatchOperations, lockBatchHosts, readBatchSite } from "../../db/queries/batches.ts";
import { lockSite } from "../../db/queries/maas-sites.ts";
import { nextVerbOf } from "../../db/queries/workflows.ts";
import type { Workflow as WorkflowRow } from "../../db/schema/index.ts";
import { type InTx, inSavepoint, type Tx } from "../../db/tx.ts";
import { applyVerb, type VerbRequest } from "./apply-verb.ts";
import type { Verb } from "./recovery.ts";
import type { Workflow } from "./workflow.ts";

type Request = Omit<VerbRequest, "workflowId" | "verb">;
type Result = BatchVerbResult["results"][number];
const UNDER_WAY = ["pending", "running", "compensating"] as const satisfies readonly WorkflowStatus[];

export interface NamedBatch {
  readonly kind: BatchKind;
  readonly id: BatchId;
}

/**
 * One transaction handles at most `HOSTS_AT_ONCE` hosts of a batch. Until a transaction that cancels or continues operations of a batch ends, clients
 * see no newer events and the site admits no operation.
 */
export const HOSTS_AT_ONCE = 50;

/** With `failed`, `cancelBatch` cancels the failed operations of the batch besides the operations under way (lifecycle 4.4). */
export const cancelBatch = (
  inTx: InTx,
  kinds: readonly Workflow[],
  batch: NamedBatch,
  request: Request & { readonly failed: boolean },
): Promise<BatchVerbResult> => {
  const { failed, ...by } = request;
  const statuses = failed ? [...UNDER_WAY, ...FAILED_WORKFLOW_STATUSES] : UNDER_WAY;
  return applyToEach(inTx, kinds, batch, { statuses, by, verbFor: () => "cancel" });
};

/** Continues each failed operation of a batch by the verb that the operation's failure recommends. */
export const recoverBatch = (
  inTx: InTx,
  kinds: readonly Workflow[],
  batch: NamedBatch,
  request: Request & { readonly failureClass?: string | undefined },
): Promise<BatchVerbResult> => {
  const { failureClass, ...by } = request;
  const verbFor = (row: WorkflowRow): Verb | null =>
    failureClass === undefined || row.failureClass === failureClass ? nextVerbOf(row) : null;
  return applyToEach(inTx, kinds, batch, { statuses: FAILED_WORKFLOW_STATUSES, failureClass, by, verbFor });
};

interface Order {
  /** A batch verb does not change an operation that no longer has one of the `statuses` when the verb reaches it. */
  readonly statuses: readonly WorkflowStatus[];
  /** The failure class of the operations to which the batch verb applies; undefined if the verb applies to operations of every failure class. */
  readonly failureClass?: string | undefined;
  readonly by: Request;
  verbFor(row: WorkflowRow): Verb | null;
}

/**
 * Applies a verb to the hosts of a batch, a few in each transaction, with one audit entry for each host. If the hub stops before it has reached all
 * hosts of the batch, a repeated request handles the remaining hosts, because the verb does not apply to hosts that are done.
 */
async function applyToEach(
  inTx: InTx,
  kinds: readonly Workflow[],
  batch: NamedBatch,
  order: Order,
): Promise<BatchVerbResult> {
  const { siteId, ids } = await inTx((tx) => listMeant(tx, batch, order));
  const results: Result[] = [];
  for (let at = 0; at < ids.length; at += HOSTS_AT_ONCE) {
    const some = ids.slice(at, at + HOSTS_AT_ONCE);
    results.push(...(await inTx((tx) => applyToSome(tx, kinds, { kind: batch.kind, siteId, ids: some }, order))));
  }
  const applied = results.filter((one) => one.skipped_because === null).length;
  return { batch_id: batch.id, applied, skipped: results.length - applied, results };
}

/**
 * Lists the operations of a batch to which a verb applies, pending operations first. If a pending operation of a batch were cancelled last, it could
 * take a place that the batch frees, and start before its own cancel.
 */
async function listMeant(
  tx: Tx,
  { kind, id }: NamedBatch,
  { statuses, failureClass }: Order,
): Promise<{ siteId: SiteId; ids: WorkflowId[] }> {
  const siteId = await readBatchSite(tx, kind, id);
  if (siteId === null) throw new ApiError("not_found", `There is no ${kind} batch ${id}.`);
  return { siteId, ids: await listBatchOperations(tx, id, { statuses, failureClass }) };
}

/**
 * Applies an operator's verb to some hosts of a batch, under the same lock on the site that the hub takes to start pending operations (admission).
 * The locks on the rows of hosts prevent a deadlock between two requests for batches, and keep the hub from starting an operation that is being
 * cancelled. The transaction for a batch verb takes all its locks before its first write, so that waits for locks delay no events.
 */
async function applyToSome(
  tx: Tx,
  kinds: readonly Workflow[],
  { kind, siteId, ids }: { kind: BatchKind; siteId: SiteId; ids: readonly WorkflowId[] },
  order: Order,
): Promise<Result[]> {
  await lockSite(tx, siteId);
  const hosts = new Map((await lockBatchHosts(tx, ids)).map((host) => [host.row.id, host]));
  const results: Result[] = [];
  for (const id of ids) {
    const host = hosts.get(id);
    if (host !== undefined)
      results.push({
        ...operationIdsOf(kind, id),
        ...(await applyToOne(tx, kinds, host, order)),
      });
  }
  return results;
}

/** If a host's operation refuses the verb, a savepoint undoes only the writes for that host, and the hub continues with the next host. */
async function applyToOne(
  tx: Tx,
  kinds: readonly Workflow[],
  { row, hostname }: BatchHost,
  { statuses, by, verbFor }: Order,
): Promise<Omit<Result, keyof ReturnType<typeof operationIdsOf>>> {
  const about = { hostname, status: row.status };
  if (!statuses.includes(row.status)) {
    const why = `The operation was ${row.status} when its turn came, so it was not changed. Repeat the request if the verb should apply to it.`;
    return { ...about, verb: null, skipped_because: why };
  }
  const verb = verbFor(row);
  if (verb === null) {
    const why = "The failure has another class than requested, or recommends no verb";
    return { ...about, verb, skipped_because: why };
  }
  try {
    const after = await inSavepoint(tx, () => applyVerb(tx, kinds, { ...by, workflowId: row.id, verb }));
    return { ...about, verb, status: after.status, skipped_because: null };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { ...about, verb, skipped_because: error.message };
  }
}
