import type { NodeId, RepairId } from "../../../shared/ids.ts";
import { REPAIR_ENTRIES } from "../../../shared/repair.ts";
import { bigserial, check, index, integer, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/** The timeline of each repair case, to which the hub only adds. */
export const repairEvents = pgTable(
  "repair_events",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    repairId: uuid("repair_id").$type<RepairId>().notNull(),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    type: text("type", { enum: REPAIR_ENTRIES }).notNull(),
    attempt: integer("attempt").notNull(),
    actor: text("actor").notNull(),
    message: text("message").notNull(),
    details: jsonb("details").$type<Readonly<Record<string, unknown>>>().notNull().default({}),
    occurredAt: at("occurred_at").notNull().default(sql`now()`),
  },
  (t) => [
    check("repair_events_type_check", oneOf("type", REPAIR_ENTRIES)),
    index("repair_events_repair_idx").on(t.repairId, t.id),
    index("repair_events_attempts_idx").on(t.nodeId, t.occurredAt).where(sql`"type" = 'claimed'`),
  ],
);
export type RepairEventRow = typeof repairEvents.$inferSelect;
