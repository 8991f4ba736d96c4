import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import type { StageEvent, WorkflowProgress } from "../../../shared/api/workflow-progress.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { Json } from "../../../shared/json.ts";
import { type SQL, sql } from "../orm.ts";
import { type Workflow, type WorkflowEvent, workflows } from "../schema/index.ts";
import { nextVerbOf, stopRequestOf } from "./workflows.ts";

/** What every read model over a workflow's row shows of it (lifecycle 4.2.1, 4.12, 5.7). */
export const isoOrNull = (date: Date | null): string | null => date?.toISOString() ?? null;

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

/** Where a page of a list by `requested_at`, newest first, ended. The text keeps PostgreSQL's microseconds, which a Date would cut off. */
export const cursorOf = (requestedAt: string, id: WorkflowId): string =>
  Buffer.from(`${requestedAt}|${id}`).toString("base64url");

/** PostgreSQL's text of a timestamp in UTC, and an id; both real, or the database would refuse the statement. */
const Cursor = z.tuple([
  z.string().refine((text) => z.iso.datetime().safeParse(text.replace(" ", "T").replace(/\+00$/, "Z")).success),
  z.uuid(),
]);

/** Throws ApiError `validation_failed` for a cursor that no such list gave. */
export function beforeCursor(cursor: string): SQL {
  const parsed = Cursor.safeParse(Buffer.from(cursor, "base64url").toString("utf8").split("|"));
  if (!parsed.success) {
    throw new ApiError("validation_failed", "The cursor is not one that this list gave. Start again without it.", {
      errors: [{ pointer: "/cursor", message: "is not a cursor of this list" }],
    });
  }
  return sql`(${workflows.requestedAt}, ${workflows.id}) < (${parsed.data[0]}::timestamptz, ${parsed.data[1]}::uuid)`;
}
