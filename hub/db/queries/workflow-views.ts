import type { StageEvent, WorkflowProgress } from "../../../shared/api/workflow-progress.ts";
import type { Json } from "../../../shared/json.ts";
import { FAILED_WORKFLOW_STATUSES, type StatusFilter } from "../../../shared/workflow-status.ts";
import { inArray, type SQL, sql } from "../orm.ts";
import { type Workflow, type WorkflowEvent, workflows } from "../schema/index.ts";
import { nextVerbOf, stopRequestOf } from "./workflows.ts";

export const isoOrNull = (date: Date | null): string | null => date?.toISOString() ?? null;

/** The fields of an API answer that show a workflow's progress (lifecycle 4.2.1, 4.12, 5.7). */
export const toProgress = (workflow: Workflow): WorkflowProgress => ({
  status: workflow.status,
  current_stage: workflow.stage,
  current_attempt: workflow.attempt,
  waiting_for: workflow.waitReason,
  stage_deadline: isoOrNull(workflow.stageDeadline),
  pending_verb: stopRequestOf(workflow)?.verb ?? null,
  failure_class: workflow.failureClass,
  error_code: workflow.failureCode,
  error_message: workflow.failureMessage,
  error_details: workflow.evidence as Json,
  next_action: workflow.nextAction,
  next_verb: nextVerbOf(workflow),
  requested_by: workflow.requestedBy,
  requested_at: workflow.requestedAt.toISOString(),
  started_at: isoOrNull(workflow.startedAt),
  completed_at: isoOrNull(workflow.completedAt),
  updated_at: workflow.updatedAt.toISOString(),
});

export const toStageEvent = (event: WorkflowEvent): StageEvent => ({
  id: event.id.toString(),
  stage: event.stage,
  attempt: event.attempt,
  status: event.status,
  message: event.message,
  details: event.details as Json,
  occurred_at: event.occurredAt.toISOString(),
});

export const requestedBefore = ([at, id]: readonly [string, string]): SQL =>
  sql`(${workflows.requestedAt}, ${workflows.id}) < (${at}::timestamptz, ${id}::uuid)`;

/** SQL that is true for a workflow that has one of the given statuses; the status `failed` stands for both statuses of a failed workflow. */
export const hasStatus = (...statuses: readonly StatusFilter[]): SQL =>
  inArray(
    workflows.status,
    statuses.flatMap((status) => (status === "failed" ? FAILED_WORKFLOW_STATUSES : [status])),
  );

/**
 * The time at which a workflow was requested, as text for a cursor. A cursor holds PostgreSQL's microseconds, because a JavaScript Date would lose
 * workflows of the same millisecond.
 */
export const requestedAtText = sql<string>`${workflows.requestedAt}::text`;
