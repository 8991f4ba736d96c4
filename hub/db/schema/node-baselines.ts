import type { NodeId, TaskId } from "../../../shared/ids.ts";
import { integer, jsonb, pgTable, primaryKey, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The residue snapshot of each node's generation that was taken before the first tenant (architecture 14.4). A row exists from the moment when the
 * hub queued the task, and its snapshot is null until the task has succeeded. Code that reads the snapshot parses it with the schema
 * `ResidueSnapshot`.
 */
export const nodeBaselines = pgTable(
  "node_baselines",
  {
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    generation: integer("generation").notNull(),
    /** The newest task that was queued for the baseline. */
    taskId: uuid("task_id").$type<TaskId>().notNull(),
    requestedAt: at("requested_at").notNull().default(sql`now()`),
    /** `hub`, or the name of the operator who asked for a new baseline. */
    requestedBy: text("requested_by").notNull(),
    reason: text("reason").notNull(),
    snapshot: jsonb("snapshot"),
    takenAt: at("taken_at"),
    bootId: text("boot_id"),
    agentVersion: text("agent_version"),
    /** The task whose result is the snapshot. A newer task replaces the snapshot only when it has succeeded. */
    takenTaskId: uuid("taken_task_id").$type<TaskId>(),
    /** Why the result of the newest task cannot be the baseline, for example because a tenant had the node meanwhile. */
    problem: text("problem"),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.generation] })],
);
export type NodeBaseline = typeof nodeBaselines.$inferSelect;
