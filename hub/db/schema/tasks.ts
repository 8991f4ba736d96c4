import type { NodeId, TaskId, WorkflowId } from "../../../shared/ids.ts";
import { TASK_STATES } from "../../../shared/task-state.ts";
import { check, index, integer, jsonb, pgTable, sql, text, unique, uuid } from "../orm.ts";
import { at, createdAt, oneOf, updatedAt } from "./columns.ts";

/**
 * The column `epoch` counts how often the hub delivered the task to the agent. An acknowledgement, progress report or result that names an earlier
 * delivery of the task has no effect (architecture 11).
 */
export const tasks = pgTable(
  "tasks",
  {
    id: uuid("id").$type<TaskId>().primaryKey().default(sql`gen_random_uuid()`),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    workflowId: uuid("workflow_id").$type<WorkflowId>(),
    type: text("type").notNull(),
    /** The task's input, which never contains a secret. */
    input: jsonb("input").notNull(),
    state: text("state", { enum: TASK_STATES }).notNull().default("queued"),
    /** The hub makes one task from two requests of one node with the same idempotency key. */
    idempotencyKey: text("idempotency_key").notNull(),
    epoch: integer("epoch").notNull().default(0),
    leaseUntil: at("lease_until"),
    attempts: integer("attempts").notNull().default(0),
    maxAttempts: integer("max_attempts").notNull().default(5),
    notBefore: at("not_before").notNull().default(sql`now()`),
    /** After its deadline, an unfinished task is `expired`, and the hub offers the task to no agent any more. */
    deadline: at("deadline").notNull(),
    progress: jsonb("progress"),
    progressSeq: integer("progress_seq"),
    result: jsonb("result"),
    errorCode: text("error_code"),
    errorMessage: text("error_message"),
    startedAt: at("started_at"),
    finishedAt: at("finished_at"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    index("tasks_age_idx").on(t.finishedAt).where(sql`finished_at is not null`),
    check("tasks_state_check", oneOf("state", TASK_STATES)),
    // The newest `node.drain` or `node.undrain` task of a node in the index `tasks_closing_idx` says whether the node's host is closed to users. The
    // index `tasks_closing_idx` has all columns that a query needs to find out whether a host is closed to users.
    index("tasks_closing_idx")
      .on(t.nodeId, t.createdAt, t.id, t.type, t.state)
      .where(
        sql`"type" in ('node.drain', 'node.undrain') and not "input" @> '{"plan": true}' and ("type" = 'node.undrain' or "attempts" > 0)`,
      ),
    unique("tasks_idempotency_key").on(t.nodeId, t.idempotencyKey),
    index("tasks_open_idx")
      .on(t.nodeId, t.createdAt)
      .where(sql`"state" in ('queued', 'offered', 'running', 'cancelling')`),
  ],
);
export type Task = typeof tasks.$inferSelect;
