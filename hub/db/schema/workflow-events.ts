import type { WorkflowId } from "../../../shared/ids.ts";
import { STAGE_EVENT_STATUSES } from "../../../shared/workflow-status.ts";
import { bigserial, check, index, integer, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/** Stage history of a workflow (lifecycle 4.2.1), written in the transaction that moves it. */
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
    /** Fence under which it was written: proves that no two owners moved the row at once. */
    fence: integer("fence").notNull(),
    /** Hub whose claim it was, and the claim's own time, later than all that came before it; null for what no claim wrote: admissions, verbs. */
    hubId: uuid("hub_id"),
    claimedAt: at("claimed_at"),
    occurredAt: at("occurred_at").notNull().default(sql`now()`),
  },
  (t) => [
    // Retention goes by it.
    index("workflow_events_age_idx").on(t.occurredAt),
    check("workflow_events_status_check", oneOf("status", STAGE_EVENT_STATUSES)),
    index("workflow_events_workflow_idx").on(t.workflowId, t.id),
  ],
);
export type WorkflowEvent = typeof workflowEvents.$inferSelect;
