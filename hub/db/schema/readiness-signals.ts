import type { NodeId } from "../../../shared/ids.ts";
import { boolean, index, integer, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The newest readiness signals of each node and source as the hub received them, with one row for each signal id. The field `applied` is false for a
 * readiness signal of an older generation.
 */
export const readinessSignals = pgTable(
  "readiness_signals",
  {
    id: uuid("id").primaryKey(),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    generation: integer("generation").notNull(),
    source: text("source").notNull(),
    bootId: text("boot_id"),
    conditions: jsonb("conditions").notNull(),
    applied: boolean("applied").notNull(),
    receivedAt: at("received_at").notNull().default(sql`now()`),
  },
  (t) => [
    index("readiness_signals_age_idx").on(t.receivedAt),
    index("readiness_signals_of_node_idx").on(t.nodeId, t.source, t.receivedAt, t.id),
  ],
);
export type ReadinessSignalRow = typeof readinessSignals.$inferSelect;
