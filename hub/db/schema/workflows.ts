import type { BatchId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { bigint, check, index, integer, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf, updatedAt } from "./columns.ts";

/**
 * A workflow's row is also its queue entry (decision P2). Hubs claim rows with SKIP LOCKED, hold them by a lease, fence them by a counter, and move
 * each in one transaction. A row names its stage by a key and not by a position, so an upgrade strands no row (decision W3).
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
    /** The number of the attempt of this stage: 1 for the first, +1 for each retry. */
    attempt: integer("attempt").notNull().default(1),
    /**
     * How often the stage was claimed since it was entered. Above 1 an earlier run may have acted outside, so `observe_first` observes before it
     * acts.
     */
    stageRuns: integer("stage_runs").notNull().default(0),
    stageEnteredAt: at("stage_entered_at"),
    stageDeadline: at("stage_deadline"),
    /** What the stage waits for, in words. Null while the stage does not wait. */
    waitReason: text("wait_reason"),
    /** The key whose notification ends the wait early, e.g. `maas:<site>/<system id>`, `node:<id>`, `task:<id>`. */
    waitOn: text("wait_on"),
    /** When the row is due. Null if nothing but an operator moves the row. */
    wakeAt: at("wake_at"),
    leaseOwner: uuid("lease_owner"),
    leaseUntil: at("lease_until"),
    fence: bigint("fence", { mode: "number" }).notNull().default(0),
    input: jsonb("input").notNull(),
    /** Facts that the stages have gathered, never a secret. The workflow's own schema parses them when they are read. */
    state: jsonb("state").notNull().default({}),
    failureClass: text("failure_class"),
    failureCode: text("failure_code"),
    failureMessage: text("failure_message"),
    evidence: jsonb("evidence").notNull().default({}),
    nextAction: text("next_action"),
    /** While `compensating`: the stages still to compensate, last first, and the status that follows. */
    compensation: jsonb("compensation"),
    /** A verb that waits for the current run of the stage to end. */
    stopRequest: jsonb("stop_request"),
    /** How hubs of version 0.2 and older request a cancel. This version reads the column and never sets it. */
    cancelRequestedAt: at("cancel_requested_at"),
    requestedBy: text("requested_by"),
    requestedAt: at("requested_at").notNull().default(sql`now()`),
    startedAt: at("started_at"),
    completedAt: at("completed_at"),
    updatedAt: updatedAt(),
  },
  (t) => [
    // Retention finds old workflows by this index.
    index("workflows_age_idx").on(t.completedAt).where(sql`completed_at is not null`),
    check("workflows_status_check", oneOf("status", WORKFLOW_STATUSES)),
    index("workflows_due_idx")
      .on(t.wakeAt)
      .where(sql`"status" in ('pending', 'running', 'compensating') and "wake_at" is not null`),
    index("workflows_wait_on_idx").on(t.waitOn).where(sql`"wait_on" is not null`),
    index("workflows_batch_idx").on(t.batchId),
    index("workflows_site_idx").on(t.siteId, t.status),
  ],
);
export type Workflow = typeof workflows.$inferSelect;
