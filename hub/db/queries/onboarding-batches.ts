import type { Batch, BatchDetail, BatchFailure } from "../../../shared/api/onboardings.ts";
import type { BatchId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { WorkflowStatus } from "../../../shared/workflow-status.ts";
import { and, asc, desc, eq, inArray, like, type SQL, sql } from "../orm.ts";
import { nodeOnboardings, type OnboardingBatch, onboardingBatches, workflows } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isoOrNull } from "./workflow-views.ts";
import { isEnded, nextVerbOf } from "./workflows.ts";

interface Tally {
  readonly counts: Batch["counts"];
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
}
const NOTHING: Tally = { counts: {}, startedAt: null, endedAt: null };
const date = (text: string | null): Date | null => (text === null ? null : new Date(text));

/** Counts the onboardings of each batch by status, in one statement for any number of batches. */
async function tally(db: Db | Tx, ids: readonly BatchId[]): Promise<Map<BatchId, Tally>> {
  const rows = await db
    .select({
      batchId: workflows.batchId,
      status: workflows.status,
      count: sql<number>`count(*)::int`,
      startedAt: sql<string | null>`min(${workflows.startedAt})`,
      endedAt: sql<string | null>`max(${workflows.completedAt})`,
    })
    .from(workflows)
    .where(inArray(workflows.batchId, [...ids]))
    .groupBy(workflows.batchId, workflows.status);
  const tallies = new Map<BatchId, Tally>();
  for (const row of rows) {
    if (row.batchId === null) continue;
    const { counts, startedAt, endedAt } = tallies.get(row.batchId) ?? NOTHING;
    const [started, ended] = [date(row.startedAt), date(row.endedAt)];
    tallies.set(row.batchId, {
      counts: { ...counts, [row.status]: row.count },
      startedAt: startedAt === null || (started !== null && started < startedAt) ? started : startedAt,
      endedAt: endedAt === null || (ended !== null && ended > endedAt) ? ended : endedAt,
    });
  }
  return tallies;
}

function toBatch(batch: OnboardingBatch, { counts, startedAt, endedAt }: Tally): Batch {
  const of = (...statuses: (keyof typeof counts)[]): number =>
    statuses.reduce((sum, status) => sum + (counts[status] ?? 0), 0);
  const present = Object.keys(counts) as (keyof typeof counts)[];
  const done = present.every(isEnded);
  return {
    batch_id: batch.id,
    site_id: batch.siteId,
    requested_by: batch.requestedBy,
    requested_at: batch.requestedAt.toISOString(),
    started_at: isoOrNull(startedAt),
    ended_at: done ? isoOrNull(endedAt) : null,
    total: of(...present),
    succeeded: of("completed", "reconciled"),
    failed: of("failed_retryable", "failed_manual_intervention"),
    cancelled: of("cancelled"),
    counts,
    done,
  };
}

export async function insertBatch(
  tx: Tx,
  batch: Pick<OnboardingBatch, "id" | "siteId" | "requestedBy">,
): Promise<void> {
  await tx.insert(onboardingBatches).values(batch);
}

/** Returns the site of a batch of onboardings, or null if there is no batch with the given id. */
export async function readBatchSite(tx: Tx, id: BatchId): Promise<SiteId | null> {
  const [batch] = await tx
    .select({ siteId: onboardingBatches.siteId })
    .from(onboardingBatches)
    .where(eq(onboardingBatches.id, id));
  return batch?.siteId ?? null;
}

/**
 * Returns the onboardings of the batch that have one of the given statuses, with the waiting onboardings first. With `failureClass`, the list has
 * only onboardings that failed with that class.
 */
export async function listBatchOnboardings(
  tx: Tx,
  id: BatchId,
  {
    statuses,
    failureClass,
  }: { readonly statuses: readonly WorkflowStatus[]; readonly failureClass?: string | undefined },
): Promise<WorkflowId[]> {
  const rows = await tx
    .select({ id: workflows.id })
    .from(workflows)
    .where(
      and(
        eq(workflows.batchId, id),
        inArray(workflows.status, [...statuses]),
        failureClass === undefined ? undefined : eq(workflows.failureClass, failureClass),
      ),
    )
    .orderBy(sql`${workflows.status} <> 'pending'`, asc(workflows.id));
  return rows.map((row) => row.id);
}

/** Reads a batch of onboardings with its failures grouped by cause, for an operator who reviews the batch. */
export async function readBatch(db: Db | Tx, id: BatchId): Promise<BatchDetail | null> {
  const [batch] = await db.select().from(onboardingBatches).where(eq(onboardingBatches.id, id));
  if (batch === undefined) return null;
  const summary = toBatch(batch, (await tally(db, [id])).get(id) ?? NOTHING);
  return { ...summary, failures: summary.failed === 0 ? [] : await failuresOf(db, id) };
}

async function failuresOf(db: Db | Tx, id: BatchId): Promise<BatchFailure[]> {
  const rows = await db
    .select({ workflow: workflows, hostname: nodeOnboardings.hostname })
    .from(workflows)
    .innerJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .where(and(eq(workflows.batchId, id), like(workflows.status, "failed_%")))
    .orderBy(nodeOnboardings.hostname);
  const groups = Map.groupBy(rows, ({ workflow }) =>
    [workflow.failureClass, workflow.failureCode, nextVerbOf(workflow)].join("/"),
  );
  return [...groups.values()]
    .flatMap(([first, ...others]) => {
      if (first === undefined) return [];
      const { failureClass, failureCode, nextAction } = first.workflow;
      const hosts = [first, ...others].map(({ workflow, hostname }) => ({
        onboarding_id: workflow.id,
        hostname,
        message: workflow.failureMessage,
      }));
      return {
        failure_class: failureClass ?? "unknown",
        error_code: failureCode ?? "unknown",
        next_action: nextAction,
        next_verb: nextVerbOf(first.workflow),
        hosts,
      };
    })
    .sort((a, b) => b.hosts.length - a.hosts.length);
}

/** Lists batches of onboardings, newest first. The argument `before` is the last batch of the previous page. */
export async function listBatches(
  db: Db,
  filter: { readonly siteId?: SiteId | undefined },
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<{ batch: Batch; at: string }[]> {
  const conditions: (SQL | undefined)[] = [
    filter.siteId === undefined ? undefined : eq(onboardingBatches.siteId, filter.siteId),
    page.before === null
      ? undefined
      : sql`(${onboardingBatches.requestedAt}, ${onboardingBatches.id}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  const rows = await db
    .select({ batch: onboardingBatches, at: sql<string>`${onboardingBatches.requestedAt}::text` })
    .from(onboardingBatches)
    .where(and(...conditions))
    .orderBy(desc(onboardingBatches.requestedAt), desc(onboardingBatches.id))
    .limit(page.limit);
  const tallies = await tally(
    db,
    rows.map((row) => row.batch.id),
  );
  return rows.map(({ batch, at }) => ({ batch: toBatch(batch, tallies.get(batch.id) ?? NOTHING), at }));
}
