import { z } from "zod";
import { NEXT_VERBS } from "../failure-rule.ts";
import { FAILURE_CLASSES } from "../failures.ts";
import { WorkflowId } from "../ids.ts";
import { Json } from "../json.ts";
import { STAGE_EVENT_STATUSES, STOP_VERBS, TERMINAL_WORKFLOW_STATUSES, WorkflowStatus } from "../workflow-status.ts";
import { namedBy } from "./extensions.ts";
import { Timestamp } from "./values.ts";

/** A client can name a workflow by its host, because a host has at most one unfinished workflow of each kind. */
export const idOfHostsWork = (list: string, id: string) =>
  WorkflowId.meta(
    namedBy({ list, name: "hostname", id, unless: { field: "status", values: TERMINAL_WORKFLOW_STATUSES } }),
  );

export const StageEvent = z.strictObject({
  id: z.string(),
  stage: z.string(),
  attempt: z.int(),
  status: z.enum(STAGE_EVENT_STATUSES),
  message: z.string().nullable(),
  details: Json,
  occurred_at: Timestamp,
});
export type StageEvent = z.output<typeof StageEvent>;

/** The members by which the API shows the progress of workflows of all kinds, with the diagnostics of lifecycle 4.12. */
export const workflowProgress = {
  status: WorkflowStatus,
  current_stage: z.string(),
  current_attempt: z.int(),
  /** What the workflow's stage waits for, as a sentence; null when the stage does not wait. */
  waiting_for: z.string().nullable(),
  stage_deadline: Timestamp.nullable(),
  /**
   * A verb that the hub accepted while a run of the workflow's stage was under way takes effect after the run. `pending_verb` is null when no
   * accepted verb of an operator waits for the end of a run of the workflow's stage.
   */
  pending_verb: z.enum(STOP_VERBS).nullable(),
  failure_class: z.enum(FAILURE_CLASSES as [string, ...string[]]).nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  error_details: Json,
  next_action: z.string().nullable(),
  /** The operator's next verb for the workflow (lifecycle 4.9), after the operator has done what `next_action` says. */
  next_verb: z.enum(NEXT_VERBS).nullable(),
  requested_by: z.string().nullable(),
  requested_at: Timestamp,
  started_at: Timestamp.nullable(),
  completed_at: Timestamp.nullable(),
  updated_at: Timestamp,
};
const WorkflowProgress = z.strictObject(workflowProgress);
export type WorkflowProgress = z.output<typeof WorkflowProgress>;
