import type { BatchId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { bigint, boolean, check, index, integer, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf, updatedAt } from "./columns.ts";

/**
 * A workflow's row is also the workflow's entry in the queue from which hubs take their work. A hub claims a workflow's row with SKIP LOCKED, and
 * holds it by a lease and by a fence, a number that rises with each claim (decision P2). A workflow's row names its stage by a key and not by a
 * position, so an upgrade that adds stages stops no workflow (decision W3).
 */
export const workflows = pgTable(
  "workflows",
  {
    id: uuid("id").$type<WorkflowId>().primaryKey(),
    kind: text("kind").notNull(),
    status: text("status", { enum: WORKFLOW_STATUSES }).notNull(),
    siteId: uuid("site_id").$type<SiteId>(),
    batchId: uuid("batch_id").$type<BatchId>(),
    stage: text("stage").notNull(),
    attempt: integer("attempt").notNull().default(1),
    /**
     * The number of times that hubs have claimed the stage since the workflow entered the stage. If `stage_runs` is above 1, an earlier run may have
     * acted outside the database, so a stage with `observe_first` observes before it acts.
     */
    stageRuns: integer("stage_runs").notNull().default(0),
    stageEnteredAt: at("stage_entered_at"),
    stageDeadline: at("stage_deadline"),
    /** What the workflow's stage waits for, in words; null while the stage does not wait. */
    waitReason: text("wait_reason"),
    /** The key whose notification ends the stage's wait early, for example `maas:<site>/<system id>`, `node:<id>`, `task:<id>`. */
    waitOn: text("wait_on"),
    /** The time when the workflow is due; null if only an operator's verb can continue the workflow. */
    wakeAt: at("wake_at"),
    leaseOwner: uuid("lease_owner"),
    leaseUntil: at("lease_until"),
    fence: bigint("fence", { mode: "number" }).notNull().default(0),
    input: jsonb("input").notNull(),
    /**
     * Facts that the workflow's stages have gathered, which never include a secret. A hub parses the stored facts with the schema of the workflow
     * kind.
     */
    state: jsonb("state").notNull().default({}),
    failureClass: text("failure_class"),
    failureCode: text("failure_code"),
    failureMessage: text("failure_message"),
    evidence: jsonb("evidence").notNull().default({}),
    nextAction: text("next_action"),
    /** The stages that a `compensating` workflow must still undo, and the status that the workflow gets afterwards. */
    compensation: jsonb("compensation"),
    /** A verb of an operator that waits for the current run of the workflow's stage to end. */
    stopRequest: jsonb("stop_request"),
    /**
     * The time at which a hub of version 0.2 or older requested the workflow's cancellation. The present version of the hub reads
     * `cancel_requested_at` and never sets the column.
     */
    cancelRequestedAt: at("cancel_requested_at"),
    requestedBy: text("requested_by"),
    requestedAt: at("requested_at").notNull().default(sql`now()`),
    /**
     * `told_at` is the time of the last event about the operation's progress; `untold` is true if progress was made after that event and no event
     * reports it yet.
     */
    toldAt: at("told_at"),
    untold: boolean("untold").notNull().default(false),
    startedAt: at("started_at"),
    completedAt: at("completed_at"),
    updatedAt: updatedAt(),
  },
  (t) => [
    index("workflows_age_idx").on(t.completedAt).where(sql`completed_at is not null`),
    check("workflows_status_check", oneOf("status", WORKFLOW_STATUSES)),
    index("workflows_due_idx")
      .on(t.wakeAt)
      .where(sql`"status" in ('pending', 'running', 'compensating') and "wake_at" is not null`),
    index("workflows_wait_on_idx").on(t.waitOn).where(sql`"wait_on" is not null`),
    index("workflows_batch_idx").on(t.batchId),
    index("workflows_site_idx").on(t.siteId, t.status),
    index("workflows_requested_idx").on(t.requestedAt, t.id),
    index("workflows_status_requested_idx").on(t.status, t.requestedAt, t.id),
    index("workflows_site_requested_idx").on(t.siteId, t.requestedAt, t.id),
    index("workflows_failed_idx")
      .on(t.failureClass)
      .where(sql`"status" in ('failed_retryable', 'failed_manual_intervention')`),
  ],
);
export type Workflow = typeof workflows.$inferSelect;
