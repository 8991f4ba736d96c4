import { ApiError } from "../../../shared/api/errors.ts";
import type { BatchVerbResult } from "../../../shared/api/onboardings.ts";
import type { BatchId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { WorkflowStatus } from "../../../shared/workflow-status.ts";
import { lockSite } from "../../db/queries/maas-sites.ts";
import { listBatchOnboardings, readBatchSite } from "../../db/queries/onboarding-batches.ts";
import { lockOnboardings } from "../../db/queries/onboardings.ts";
import { nextVerbOf } from "../../db/queries/workflows.ts";
import type { Workflow as WorkflowRow } from "../../db/schema/index.ts";
import { type InTx, inSavepoint, type Tx } from "../../db/tx.ts";
import { applyVerb, type VerbRequest } from "../engine/apply-verb.ts";
import type { Verb } from "../engine/recovery.ts";
import type { Workflow } from "../engine/workflow.ts";

type Request = Omit<VerbRequest, "workflowId" | "verb">;
type Result = BatchVerbResult["results"][number];
const FAILED = ["failed_retryable", "failed_manual_intervention"] as const satisfies readonly WorkflowStatus[];
const UNDER_WAY = ["pending", "running", "compensating"] as const satisfies readonly WorkflowStatus[];

/**
 * Hosts in one transaction. While it lasts, readers see no events after its first one and the site admits no host. So it must be short however
 * large the batch is.
 */
export const HOSTS_AT_ONCE = 50;

/** Cancels the batch's onboardings that are under way, and with `failed` also the failed ones that would be undone (lifecycle 4.4). */
export const cancelBatch = (
  inTx: InTx,
  kinds: readonly Workflow[],
  batchId: BatchId,
  request: Request & { readonly failed: boolean },
): Promise<BatchVerbResult> => {
  const { failed, ...by } = request;
  const statuses = failed ? [...UNDER_WAY, ...FAILED] : UNDER_WAY;
  return applyToEach(inTx, kinds, batchId, { statuses, by, verbFor: () => "cancel" });
};

/** Continues the failed onboardings, each by the verb that its own failure recommends; with `failureClass` only those of that class. */
export const recoverBatch = (
  inTx: InTx,
  kinds: readonly Workflow[],
  batchId: BatchId,
  request: Request & { readonly failureClass?: string | undefined },
): Promise<BatchVerbResult> => {
  const { failureClass, ...by } = request;
  const verbFor = (row: WorkflowRow): Verb | null =>
    failureClass === undefined || row.failureClass === failureClass ? nextVerbOf(row) : null;
  return applyToEach(inTx, kinds, batchId, { statuses: FAILED, failureClass, by, verbFor });
};

interface Order {
  /** How many hosts the verb applies to; a host that no longer qualifies when its turn comes is left as it is. */
  readonly statuses: readonly WorkflowStatus[];
  /** Of those only the ones that failed so; undefined for all. */
  readonly failureClass?: string | undefined;
  readonly by: Request;
  verbFor(row: WorkflowRow): Verb | null;
}

/**
 * Processes a few hosts in each transaction, each with its own audit. If the call breaks off, the hosts before that point are done. A second call does the rest, because a host
 * that the verb was applied to no longer qualifies for it.
 */
async function applyToEach(
  inTx: InTx,
  kinds: readonly Workflow[],
  batchId: BatchId,
  order: Order,
): Promise<BatchVerbResult> {
  const { siteId, ids } = await inTx((tx) => listMeant(tx, batchId, order));
  const results: Result[] = [];
  for (let at = 0; at < ids.length; at += HOSTS_AT_ONCE) {
    const some = ids.slice(at, at + HOSTS_AT_ONCE);
    results.push(...(await inTx((tx) => applyToSome(tx, kinds, { siteId, ids: some }, order))));
  }
  const applied = results.filter((one) => one.skipped_because === null).length;
  return { batch_id: batchId, applied, skipped: results.length - applied, results };
}

/** Waiting onboardings come first: otherwise one of them would take a place that becomes free, and begin only to be undone. */
async function listMeant(
  tx: Tx,
  batchId: BatchId,
  { statuses, failureClass }: Order,
): Promise<{ siteId: SiteId; ids: WorkflowId[] }> {
  const siteId = await readBatchSite(tx, batchId);
  if (siteId === null) throw new ApiError("not_found", `There is no onboarding batch ${batchId}.`);
  return { siteId, ids: await listBatchOnboardings(tx, batchId, { statuses, failureClass }) };
}

/**
 * Under the lock that admission takes, and with all rows locked before anything is written of one: so two of these cannot wait for each other, no host is
 * admitted while it is being cancelled, and what is waited for holds back no events. Each verb is chosen by the row as it is then.
 */
async function applyToSome(
  tx: Tx,
  kinds: readonly Workflow[],
  { siteId, ids }: { siteId: SiteId; ids: readonly WorkflowId[] },
  order: Order,
): Promise<Result[]> {
  await lockSite(tx, siteId);
  const hosts = new Map((await lockOnboardings(tx, ids)).map((host) => [host.row.id, host]));
  const results: Result[] = [];
  for (const id of ids) {
    const host = hosts.get(id);
    if (host !== undefined) results.push(await applyToOne(tx, kinds, host, order));
  }
  return results;
}

/** If one host refuses, the others are still processed, and its own writes are rolled back. */
async function applyToOne(
  tx: Tx,
  kinds: readonly Workflow[],
  { row, hostname }: { row: WorkflowRow; hostname: string },
  { statuses, by, verbFor }: Order,
): Promise<Result> {
  const about = { onboarding_id: row.id, hostname, status: row.status };
  if (!statuses.includes(row.status)) {
    const why = `It had become ${row.status} by its turn, and was left as it is. Ask again if it is still meant.`;
    return { ...about, verb: null, skipped_because: why };
  }
  const verb = verbFor(row);
  if (verb === null) {
    const why = "Its failure is not among those that were asked for, or recommends no verb";
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
