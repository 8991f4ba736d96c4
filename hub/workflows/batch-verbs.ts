import { and, asc, eq, inArray } from "drizzle-orm";
import { ApiError } from "../../shared/api/errors.ts";
import type { BatchVerbResult } from "../../shared/api/onboardings.ts";
import type { BatchId } from "../../shared/ids.ts";
import type { WorkflowStatus } from "../../shared/workflow-status.ts";
import { nextVerbOf } from "../db/queries/workflows.ts";
import {
  maasSites,
  nodeOnboardings,
  onboardingBatches,
  type Workflow as WorkflowRow,
  workflows,
} from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { applyVerb, type VerbRequest } from "./engine/apply-verb.ts";
import type { Verb } from "./engine/recovery.ts";
import type { Workflow } from "./engine/workflow.ts";

type Request = Omit<VerbRequest, "workflowId" | "verb">;
const FAILED = ["failed_retryable", "failed_manual_intervention"] as const satisfies readonly WorkflowStatus[];
const UNDER_WAY = ["pending", "running", "compensating"] as const satisfies readonly WorkflowStatus[];

/** Cancels what of the batch is under way, and with `failed` also what has failed and would be undone (lifecycle 4.4). */
export const cancelBatch = (
  tx: Tx,
  kinds: readonly Workflow[],
  batchId: BatchId,
  request: Request & { readonly failed: boolean },
): Promise<BatchVerbResult> => {
  const { failed, ...by } = request;
  return applyToEach(tx, kinds, batchId, failed ? [...UNDER_WAY, ...FAILED] : UNDER_WAY, by, () => "cancel");
};

/** Takes up what has failed, each by the verb that its own failure recommends; with `failureClass` only those of it. */
export const recoverBatch = (
  tx: Tx,
  kinds: readonly Workflow[],
  batchId: BatchId,
  request: Request & { readonly failureClass?: string | undefined },
): Promise<BatchVerbResult> => {
  const { failureClass, ...by } = request;
  return applyToEach(tx, kinds, batchId, FAILED, by, (row) =>
    failureClass === undefined || row.failureClass === failureClass ? nextVerbOf(row) : null,
  );
};

/** In one transaction and in one order, so that two of these cannot wait for each other. One that refuses keeps none of the others from it. */
async function applyToEach(
  tx: Tx,
  kinds: readonly Workflow[],
  batchId: BatchId,
  statuses: readonly WorkflowStatus[],
  by: Request,
  verbFor: (row: WorkflowRow) => Verb | null,
): Promise<BatchVerbResult> {
  const [batch] = await tx.select().from(onboardingBatches).where(eq(onboardingBatches.id, batchId));
  if (batch === undefined) throw new ApiError("not_found", `There is no onboarding batch ${batchId}.`);
  // The lock that admission takes: a host that waits is not admitted while it is being cancelled, nor are two batches of a site in each other's way.
  await tx.select({ id: maasSites.id }).from(maasSites).where(eq(maasSites.id, batch.siteId)).for("no key update");
  const rows = await tx
    .select({ row: workflows, hostname: nodeOnboardings.hostname })
    .from(workflows)
    .innerJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .where(and(eq(workflows.batchId, batchId), inArray(workflows.status, [...statuses])))
    .orderBy(asc(workflows.id));
  const results: BatchVerbResult["results"] = [];
  for (const { row, hostname } of rows) {
    const verb = verbFor(row);
    const about = { onboarding_id: row.id, hostname, verb };
    if (verb === null) {
      const why = "Its failure is not among those that were asked for, or recommends no verb";
      results.push({ ...about, status: row.status, skipped_because: why });
      continue;
    }
    try {
      const after = await applyVerb(tx, kinds, { ...by, workflowId: row.id, verb });
      results.push({ ...about, status: after.status, skipped_because: null });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      results.push({ ...about, status: row.status, skipped_because: error.message });
    }
  }
  const applied = results.filter((one) => one.skipped_because === null).length;
  return { batch_id: batchId, applied, skipped: results.length - applied, results };
}
