import type { NodeId, TaskId } from "../../../shared/ids.ts";
import { COMPARED_ITEMS } from "../../../shared/residue/items.ts";
import { index, integer, jsonb, pgTable, primaryKey, type SQL, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * SQL that is true for a baseline whose snapshot contains every item of the host's state that a soft reset compares. The SQL text is the same in the
 * index `node_baselines_whole_idx` and in the queries, because PostgreSQL uses a partial index only for queries with the index's condition. After a
 * change of `COMPARED_ITEMS`, the items that a soft reset compares, `npm run db:generate` writes a migration for the index
 * `node_baselines_whole_idx`.
 */
export const knowsComparedItems: SQL = sql.raw(
  `"snapshot" is not null and "known_items" ?& '{${COMPARED_ITEMS.join(",")}}'::text[]`,
);

/**
 * The snapshot of the clean system in each generation of a node (its baseline), taken before the first tenant (architecture 14.4), and after a
 * reinstall before the tenant is back. The row of a baseline exists as soon as the hub has queued the task that takes the snapshot of the node's
 * clean system. The snapshot in a baseline's row is null until the task that takes it has succeeded. Code that reads a row of `node_baselines` parses
 * the snapshot with the schema `ResidueSnapshot`.
 */
export const nodeBaselines = pgTable(
  "node_baselines",
  {
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    generation: integer("generation").notNull(),
    taskId: uuid("task_id").$type<TaskId>().notNull(),
    requestedAt: at("requested_at").notNull().default(sql`now()`),
    /** Who asked for the snapshot of the node's clean system: `hub`, or `operator:` with the name of the operator. */
    requestedBy: text("requested_by").notNull(),
    reason: text("reason").notNull(),
    snapshot: jsonb("snapshot"),
    /** The names of the items that the snapshot of the host's state contains, so that a query need not read the large snapshot. */
    knownItems: jsonb("known_items")
      .$type<string[]>()
      .generatedAlwaysAs(sql`jsonb_path_query_array(snapshot, '$.keyvalue().key', '{}', true)`),
    takenAt: at("taken_at"),
    bootId: text("boot_id"),
    agentVersion: text("agent_version"),
    /**
     * The id of the task that took the stored snapshot of the node's clean system. A newer task replaces the stored snapshot of the node's clean
     * system only when the newer task has succeeded.
     */
    takenTaskId: uuid("taken_task_id").$type<TaskId>(),
    /**
     * The reason why the hub cannot use the newest task's result as the snapshot of the clean system, for example a tenant on the node while the task
     * ran.
     */
    problem: text("problem"),
  },
  (t) => [
    primaryKey({ columns: [t.nodeId, t.generation] }),
    index("node_baselines_whole_idx").on(t.nodeId, t.generation).where(knowsComparedItems),
  ],
);
export type NodeBaseline = typeof nodeBaselines.$inferSelect;
