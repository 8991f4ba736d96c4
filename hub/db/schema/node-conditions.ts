import type { NodeId } from "../../../shared/ids.ts";
import { index, integer, pgTable, primaryKey, sql, text, timestamp, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The latest value of each readiness condition of each node (architecture 11). A readiness signal of an older generation never overwrites a condition
 * of a newer generation.
 */
export const nodeConditions = pgTable(
  "node_conditions",
  {
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    type: text("type").notNull(),
    status: text("status", { enum: ["True", "False", "Unknown"] }).notNull(),
    reason: text("reason").notNull(),
    message: text("message").notNull(),
    generation: integer("generation").notNull(),
    source: text("source").notNull(),
    observedAt: at("observed_at").notNull(),
    /** When the newest report arrived, by the database's clock, because the clock of a host may be wrong by hours. */
    receivedAt: at("received_at").notNull().default(sql`now()`),
    /** When the condition got its status in its generation, by the database's clock. */
    changedAt: at("changed_at").notNull().default(sql`now()`),
    /** The newest changes of the status that count for flapping, the newest first (`shared/flapping.ts`). */
    changes: timestamp("changes", { withTimezone: true, mode: "date" }).array().notNull().default(sql`'{}'`),
    /**
     * When the condition began to flap; the first report after the end of the flapping sets it to null. A flapping condition counts again if its
     * status has not changed for `FLAPPING.holdSeconds` after `changed_at`.
     */
    flappingSince: at("flapping_since"),
    /**
     * The time when the condition becomes stale, by the lifetime of the condition's type (`shared/condition-types.ts`). If `expires_at` is null, the
     * condition is valid until a newer report replaces it.
     */
    expiresAt: at("expires_at"),
  },
  (t) => [
    primaryKey({ columns: [t.nodeId, t.type] }),
    // The SQL for the schedulable nodes has one index of the conditions that are True and one of those that are not, so that it need not read
    // conditions that decide nothing.
    index("node_conditions_true_idx").on(t.type, t.nodeId, t.generation, t.expiresAt).where(sql`"status" = 'True'`),
    index("node_conditions_not_true_idx").on(t.type, t.nodeId).where(sql`"status" <> 'True'`),
    index("node_conditions_flapping_idx").on(t.nodeId, t.type).where(sql`flapping_since is not null`),
    index("node_conditions_expires_at_idx").on(t.expiresAt).where(sql`expires_at is not null`),
  ],
);
export type NodeConditionRow = typeof nodeConditions.$inferSelect;
