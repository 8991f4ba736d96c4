import type { NodeId, TaskId } from "../../../shared/ids.ts";
import { COMPARED_ITEMS } from "../../../shared/residue/items.ts";
import { index, integer, jsonb, pgTable, primaryKey, type SQL, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * SQL that is true for a baseline that knows every residue item that a comparison needs. The SQL text is the same in the index
 * `node_baselines_whole_idx` and in the queries, because PostgreSQL uses a partial index only for queries with the index's condition. After a change
 * of the residue items in `COMPARED_ITEMS`, `npm run db:generate` writes a migration for the index `node_baselines_whole_idx`.
 */
export const knowsComparedItems: SQL = sql.raw(
  `"snapshot" is not null and "known_items" ?& '{${COMPARED_ITEMS.join(",")}}'::text[]`,
);

/**
 * The residue snapshot of each generation of a node, taken before the first tenant (architecture 14.4); after a reinstall, before the tenant is back. The
 * row of a baseline exists as soon as the hub has queued the baseline's task. A baseline has no snapshot until its task has succeeded. Code that reads a
 * baseline parses the snapshot in the row with the schema `ResidueSnapshot`.
 */
export const nodeBaselines = pgTable(
  "node_baselines",
  {
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    generation: integer("generation").notNull(),
    taskId: uuid("task_id").$type<TaskId>().notNull(),
    requestedAt: at("requested_at").notNull().default(sql`now()`),
    /** The requester of the baseline is `hub`, or `operator:` with the name of the operator who asked for a new baseline. */
    requestedBy: text("requested_by").notNull(),
    reason: text("reason").notNull(),
    snapshot: jsonb("snapshot"),
    /** The names of the residue items that the snapshot contains, so that a query need not read the large snapshot. */
    knownItems: jsonb("known_items")
      .$type<string[]>()
      .generatedAlwaysAs(sql`jsonb_path_query_array(snapshot, '$.keyvalue().key', '{}', true)`),
    takenAt: at("taken_at"),
    bootId: text("boot_id"),
    agentVersion: text("agent_version"),
    /**
     * The id of the task whose result is the baseline's residue snapshot. A newer task for the baseline replaces the snapshot only when the newer
     * task has succeeded.
     */
    takenTaskId: uuid("taken_task_id").$type<TaskId>(),
    /** The reason why the result of the newest task cannot be the baseline, for example a tenant on the node while the task ran. */
    problem: text("problem"),
  },
  (t) => [
    primaryKey({ columns: [t.nodeId, t.generation] }),
    index("node_baselines_whole_idx").on(t.nodeId, t.generation).where(knowsComparedItems),
  ],
);
export type NodeBaseline = typeof nodeBaselines.$inferSelect;
