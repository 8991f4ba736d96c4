import type { WorkflowId } from "../../../shared/ids.ts";
import { STAGE_EVENT_STATUSES } from "../../../shared/workflow-status.ts";
import { bigserial, check, index, integer, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/**
 * The history of a workflow's stages (lifecycle 4.2.1). The hub writes an event of a workflow's stages in the transaction that changes the workflow's
 * row.
 */
export const workflowEvents = pgTable(
  "workflow_events",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    workflowId: uuid("workflow_id").$type<WorkflowId>().notNull(),
    stage: text("stage").notNull(),
    attempt: integer("attempt").notNull(),
    status: text("status", { enum: STAGE_EVENT_STATUSES }).notNull(),
    message: text("message"),
    details: jsonb("details").notNull().default({}),
    /**
     * Each claim of a workflow by a hub has a higher fence number; the fence numbers of the events prove that no two hubs changed the workflow's row
     * at once.
     */
    fence: integer("fence").notNull(),
    /**
     * The columns `hub_id` and `claimed_at` are null for events that a hub wrote without a claim of the workflow, e.g. for admissions and operators'
     * verbs.
     */
    hubId: uuid("hub_id"),
    claimedAt: at("claimed_at"),
    occurredAt: at("occurred_at").notNull().default(sql`now()`),
  },
  (t) => [
    index("workflow_events_age_idx").on(t.occurredAt),
    check("workflow_events_status_check", oneOf("status", STAGE_EVENT_STATUSES)),
    index("workflow_events_workflow_idx").on(t.workflowId, t.id),
    // Before the hub admits waiting operations, it counts the failed hosts of each batch that stops after failures.
    index("workflow_events_failed_idx").on(t.workflowId, t.occurredAt).where(sql`status = 'failed'`),
  ],
);
export type WorkflowEvent = typeof workflowEvents.$inferSelect;
