import type { NodeId } from "../../../shared/ids.ts";
import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { bigserial, index, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The append-only history of a node, for example status changes with their owner, enrollments, sessions, cordons, and a second host with the node's
 * identity.
 */
export const nodeEvents = pgTable(
  "node_events",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    type: text("type", {
      enum: [
        "created",
        "status_changed",
        "enrolled",
        "certificate_renewed",
        "generation_differs",
        "session_opened",
        "session_closed",
        "duplicate_identity",
        "identity_restored",
        "agent_noisy",
        "reports_cleared",
        "cordoned",
        "uncordoned",
        "health_override_set",
        "health_override_removed",
        "condition_stale",
        "readiness_lapsed",
        "allocation",
        "repair",
        "power",
        "external_provisioning",
        "machine_bound",
        "machine_unbound",
        "drift",
        "located",
      ],
    }).notNull(),
    fromStatus: text("from_status", { enum: NODE_STATUSES }),
    toStatus: text("to_status", { enum: NODE_STATUSES }),
    owner: text("owner").notNull(),
    message: text("message").notNull(),
    details: jsonb("details").notNull().default({}),
    occurredAt: at("occurred_at").notNull().default(sql`now()`),
  },
  (t) => [
    // Retention finds old node events by the index `node_events_age_idx`.
    index("node_events_age_idx").on(t.type, t.occurredAt),
    index("node_events_node_idx").on(t.nodeId, t.id),
  ],
);
export type NodeEventRow = typeof nodeEvents.$inferSelect;
