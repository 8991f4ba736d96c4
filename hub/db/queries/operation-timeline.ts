import type { UsualDuration } from "../../../shared/api/operation-timeline.ts";
import type { OperationKind, OperationSummary } from "../../../shared/api/operations.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import { desc, eq, sql } from "../orm.ts";
import { nodeDecommissions, nodeOnboardings, type WorkflowEvent, workflowEvents, workflows } from "../schema/index.ts";
import type { Db } from "../tx.ts";
import { readOperationRow } from "./operations.ts";
import type { CompensationPlan } from "./workflows.ts";

/** The largest number of events of an operation that its timeline shows. */
const MOST_EVENTS = 2_000;
/** The hub takes comparable operations of one kind from this number of the site's newest completed operations of all kinds. */
const LOOKED_AT = 5_000;
/** The number of finished operations of one kind from which the hub computes how long each stage usually takes. */
const COMPARED = 100;

export interface OperationHistory {
  readonly operation: OperationSummary;
  readonly deadline: Date | null;
  readonly undoing: string | null;
  /** The newest events, oldest first. */
  readonly events: readonly WorkflowEvent[];
  readonly cut: boolean;
}

export async function readOperationHistory(db: Db, id: WorkflowId): Promise<OperationHistory | null> {
  const found = await readOperationRow(db, id);
  if (found === null) return null;
  const newest = await db
    .select()
    .from(workflowEvents)
    .where(eq(workflowEvents.workflowId, id))
    .orderBy(desc(workflowEvents.id))
    .limit(MOST_EVENTS + 1);
  const plan = found.workflow.compensation as CompensationPlan | null;
  return {
    operation: found.operation,
    deadline: found.workflow.stageDeadline,
    undoing: found.workflow.status === "compensating" ? (plan?.stages[0] ?? null) : null,
    events: newest.slice(0, MOST_EVENTS).reverse(),
    cut: newest.length > MOST_EVENTS,
  };
}

const ofKind = (kind: OperationKind) =>
  kind === "onboarding"
    ? sql`exists (select from ${nodeOnboardings} o where o.onboarding_id = w.id)`
    : sql`exists (select from ${nodeDecommissions} d where d.decommission_id = w.id and d.mode = ${kind})`;

/**
 * How long each stage took in the last `COMPARED` completed operations of the same kind at the same site. The time after a stage's failure, in which
 * the operation waited for a person, does not count as duration of the stage. If an operation entered a stage several times, the stage's duration is
 * the sum of the durations of all these entries.
 */
export async function readUsualDurations(
  db: Db,
  { kind, site_id: siteId }: Pick<OperationSummary, "kind" | "site_id">,
): Promise<ReadonlyMap<string, UsualDuration>> {
  const { rows } = await db.execute<{ stage: string; runs: number; median: number; p90: number }>(sql`
    with past as (
      select w.id from (
        select id, requested_at from ${workflows}
        where ${siteId === null ? sql`site_id is null` : sql`site_id = ${siteId}::uuid`} and status in ('completed', 'reconciled')
        order by requested_at desc, id desc limit ${LOOKED_AT}) w
      where ${ofKind(kind)} order by w.requested_at desc limit ${COMPARED}),
    steps as (
      select e.workflow_id, e.stage, e.status,
        lead(e.occurred_at) over (partition by e.workflow_id order by e.id) - e.occurred_at as took
      from past join ${workflowEvents} e on e.workflow_id = past.id),
    runs as (
      select workflow_id, stage,
        coalesce(sum(extract(epoch from took)) filter (where status in ('started', 'waiting', 'retrying')), 0)::float8 as seconds
      from steps group by workflow_id, stage)
    select stage, count(*)::int as runs, percentile_cont(0.5) within group (order by seconds) as median,
      percentile_cont(0.9) within group (order by seconds) as p90
    from runs group by stage`);
  return new Map(
    rows.map(({ stage, runs, median, p90 }) => [stage, { runs, median_seconds: median, p90_seconds: p90 }]),
  );
}
