import {
  type Batch,
  type BatchDetail,
  type BatchFailure,
  type BatchKind,
  operationIdsOf,
} from "../../../shared/api/batches.ts";
import type { BatchId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { WorkflowStatus } from "../../../shared/workflow-status.ts";
import { and, asc, desc, eq, inArray, isNotNull, isNull, like, type SQL, sql } from "../orm.ts";
import {
  type BatchRow,
  batches,
  nodeDecommissions,
  nodeOnboardings,
  type Workflow,
  workflowEvents,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";
import { isoOrNull } from "./workflow-views.ts";
import { isEnded, nextVerbOf } from "./workflows.ts";

interface Tally {
  readonly counts: Batch["counts"];
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
}
const NOTHING: Tally = { counts: {}, startedAt: null, endedAt: null };
const date = (text: string | null): Date | null => (text === null ? null : new Date(text));

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

function toBatch(batch: BatchRow, { counts, startedAt, endedAt }: Tally): Batch {
  const of = (...statuses: (keyof typeof counts)[]): number =>
    statuses.reduce((sum, status) => sum + (counts[status] ?? 0), 0);
  const present = Object.keys(counts) as (keyof typeof counts)[];
  const done = present.every(isEnded);
  return {
    batch_id: batch.id,
    kind: batch.kind,
    mode: batch.operation?.mode ?? null,
    site_id: batch.siteId,
    requested_by: batch.requestedBy,
    requested_at: batch.requestedAt.toISOString(),
    started_at: isoOrNull(startedAt),
    ended_at: done ? isoOrNull(endedAt) : null,
    total: of(...present),
    succeeded: of("completed", "reconciled"),
    failed: of("failed_retryable", "failed_manual_intervention"),
    cancelled: of("cancelled"),
    refused: batch.refusals.length,
    counts,
    done,
    stop_after_failures: batch.stopAfterFailures,
    paused: done ? null : pauseOf(batch),
  };
}

/** The reason why no further operation of the batch begins, with the operator's next action; null if the batch is not paused. */
function pauseOf({ kind, pausedAt, pausedBy, pausedReason }: BatchRow): Batch["paused"] {
  if (pausedAt === null) return null;
  const over = `resume the batch (resume-${kind}-batch), or cancel it`;
  return {
    since: pausedAt.toISOString(),
    by: pausedBy,
    reason: pausedReason ?? "",
    next_action:
      pausedBy === null
        ? `Correct what the failures of the batch name, and recover the failed hosts (recover-${kind}-batch). Then ${over}.`
        : `When the reason for the pause is over, ${over}.`,
  };
}

export async function insertBatch(tx: Tx, batch: typeof batches.$inferInsert): Promise<void> {
  await tx.insert(batches).values(batch);
}

export async function readBatchSite(tx: Tx, kind: BatchKind, id: BatchId): Promise<SiteId | null> {
  const [batch] = await tx
    .select({ siteId: batches.siteId })
    .from(batches)
    .where(and(eq(batches.id, id), eq(batches.kind, kind)));
  return batch?.siteId ?? null;
}

/**
 * Locks the batch, so that two requests to pause or resume the batch run one after the other. `lockBatch` returns null if no batch of the kind has
 * the given id.
 */
export async function lockBatch(tx: Tx, kind: BatchKind, id: BatchId): Promise<BatchRow | null> {
  const [batch] = await tx
    .select()
    .from(batches)
    .where(and(eq(batches.id, id), eq(batches.kind, kind)))
    .for("no key update");
  return batch ?? null;
}

export interface Pause {
  readonly by: string | null;
  readonly reason: string;
}

export async function setPause(tx: Tx, id: BatchId, { by, reason }: Pause): Promise<void> {
  await tx.update(batches).set({ pausedAt: sql`now()`, pausedBy: by, pausedReason: reason }).where(eq(batches.id, id));
}

export async function endPause(tx: Tx, id: BatchId): Promise<void> {
  await tx
    .update(batches)
    .set({ pausedAt: null, pausedBy: null, pausedReason: null, resumedAt: sql`now()` })
    .where(eq(batches.id, id));
}

export interface FailedBatch {
  readonly id: BatchId;
  readonly kind: BatchKind;
  readonly siteId: SiteId;
  readonly failures: number;
}

/**
 * Lists the batches of the given sites of which too many hosts have failed (`stop_after_failures`) and whose operations still wait to begin. A host
 * counts as one failure of the batch if its operation has failed since the last resume of the batch, even if the host was recovered or cancelled
 * afterwards. `listFailedBatches` leaves out a batch that is already paused.
 */
export async function listFailedBatches(tx: Tx, siteIds: readonly SiteId[]): Promise<FailedBatch[]> {
  const waits = sql`exists (
    select 1 from workflows w where w.batch_id = ${batches.id} and w.status = 'pending' and w.started_at is null)`;
  const hasFailed = sql`exists (
    select 1 from ${workflowEvents} e where e.workflow_id = ${workflows.id} and e.status = 'failed'
    and e.occurred_at > coalesce(${batches.resumedAt}, '-infinity'))`;
  return tx
    .select({ id: batches.id, kind: batches.kind, siteId: batches.siteId, failures: sql<number>`count(*)::int` })
    .from(batches)
    .innerJoin(workflows, eq(workflows.batchId, batches.id))
    .where(
      and(
        inArray(batches.siteId, [...siteIds]),
        isNull(batches.pausedAt),
        isNotNull(batches.stopAfterFailures),
        hasFailed,
        waits,
      ),
    )
    .groupBy(batches.id)
    .having(sql`count(*) >= ${batches.stopAfterFailures}`);
}

/** The hostname of an operation is in one of two tables, because a workflow is either an onboarding or a decommission. */
const hostname = sql<string>`coalesce(${nodeOnboardings.hostname}, ${nodeDecommissions.hostname})`;

export interface BatchHost {
  readonly row: Workflow;
  readonly hostname: string;
}

/** Locks the workflow rows of the operations until the transaction ends, in the order of their ids. */
export const lockBatchHosts = (tx: Tx, ids: readonly WorkflowId[]): Promise<BatchHost[]> =>
  tx
    .select({ row: workflows, hostname })
    .from(workflows)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, workflows.id))
    .where(inArray(workflows.id, [...ids]))
    .orderBy(asc(workflows.id))
    .for("update", { of: workflows });

export async function listBatchOperations(
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

export async function readBatch(db: Db | Tx, kind: BatchKind, id: BatchId): Promise<BatchDetail | null> {
  const [batch] = await db
    .select()
    .from(batches)
    .where(and(eq(batches.id, id), eq(batches.kind, kind)));
  if (batch === undefined) return null;
  const { operation, filter, refusals } = batch;
  const summary = toBatch(batch, (await tally(db, [id])).get(id) ?? NOTHING);
  const failures = summary.failed === 0 ? [] : await failuresOf(db, kind, id);
  return { ...summary, operation, filter, failures, refusals };
}

async function failuresOf(db: Db | Tx, kind: BatchKind, id: BatchId): Promise<BatchFailure[]> {
  const rows = await db
    .select({ workflow: workflows, hostname })
    .from(workflows)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, workflows.id))
    .where(and(eq(workflows.batchId, id), like(workflows.status, "failed_%")))
    .orderBy(hostname);
  const groups = Map.groupBy(rows, ({ workflow }) =>
    [workflow.failureClass, workflow.failureCode, nextVerbOf(workflow)].join("/"),
  );
  return [...groups.values()]
    .flatMap(([first, ...others]) => {
      if (first === undefined) return [];
      const { failureClass, failureCode, nextAction } = first.workflow;
      const hosts = [first, ...others].map(({ workflow, hostname }) => ({
        ...operationIdsOf(kind, workflow.id),
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

export async function listBatches(
  db: Db,
  kind: BatchKind,
  filter: { readonly siteId?: SiteId | undefined; readonly reach: Reach },
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<{ batch: Batch; at: string }[]> {
  const conditions: (SQL | undefined)[] = [
    eq(batches.kind, kind),
    filter.siteId === undefined ? undefined : eq(batches.siteId, filter.siteId),
    isWithin(filter.reach, { site: batches.siteId }),
    page.before === null
      ? undefined
      : sql`(${batches.requestedAt}, ${batches.id}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  const rows = await db
    .select({ batch: batches, at: sql<string>`${batches.requestedAt}::text` })
    .from(batches)
    .where(and(...conditions))
    .orderBy(desc(batches.requestedAt), desc(batches.id))
    .limit(page.limit);
  const tallies = await tally(
    db,
    rows.map((row) => row.batch.id),
  );
  return rows.map(({ batch, at }) => ({ batch: toBatch(batch, tallies.get(batch.id) ?? NOTHING), at }));
}
