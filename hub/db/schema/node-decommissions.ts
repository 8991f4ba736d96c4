import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { DECOMMISSION_MODES } from "../../../shared/workflow-status.ts";
import { check, index, integer, pgTable, text, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";
import { workflows } from "./workflows.ts";

/**
 * The request of a decommission (lifecycle 5.7). The decommission's progress is the `workflows` row of the same id, and its history is the events of
 * that row.
 */
export const nodeDecommissions = pgTable(
  "node_decommissions",
  {
    decommissionId: uuid("decommission_id")
      .$type<WorkflowId>()
      .primaryKey()
      .references(() => workflows.id),
    /** This column has no foreign key, because the record of the decommission outlives the node. */
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    siteId: uuid("site_id").$type<SiteId>(),
    hostname: text("hostname").notNull(),
    maasSystemId: text("maas_system_id"),
    mode: text("mode", { enum: DECOMMISSION_MODES }).notNull(),
    reason: text("reason").notNull(),
    /** The node's status when the operation was requested. For example, cancelling a drain must not put a quarantined node back into service. */
    priorStatus: text("prior_status", { enum: NODE_STATUSES }).notNull(),
    /** The override of lifecycle 5.8: the decommission continues without the agent's answer. Null until an operator forces the decommission. */
    forcedAt: at("forced_at"),
    forcedBy: text("forced_by"),
    forcedReason: text("forced_reason"),
    /** The generation of the installed system that MAAS was seen to release. Null while no release was seen. */
    releasedGeneration: integer("released_generation"),
    createdAt: createdAt(),
  },
  (t) => [
    check("node_decommissions_mode_check", oneOf("mode", DECOMMISSION_MODES)),
    check("node_decommissions_prior_status_check", oneOf("prior_status", NODE_STATUSES)),
    index("node_decommissions_node_idx").on(t.nodeId),
  ],
);
export type NodeDecommission = typeof nodeDecommissions.$inferSelect;
