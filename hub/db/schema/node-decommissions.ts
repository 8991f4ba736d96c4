import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { DECOMMISSION_MODES } from "../../../shared/workflow-status.ts";
import { check, index, integer, pgTable, text, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";
import { workflows } from "./workflows.ts";

/** What a decommission is about (lifecycle 5.7); its progress is the `workflows` row of the same id, its history that row's events. */
export const nodeDecommissions = pgTable(
  "node_decommissions",
  {
    decommissionId: uuid("decommission_id")
      .$type<WorkflowId>()
      .primaryKey()
      .references(() => workflows.id),
    /** No reference: the record outlives the node. */
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    siteId: uuid("site_id").$type<SiteId>(),
    hostname: text("hostname").notNull(),
    maasSystemId: text("maas_system_id"),
    mode: text("mode", { enum: DECOMMISSION_MODES }).notNull(),
    reason: text("reason").notNull(),
    /** What the node was when the operation was asked for: a cancelled drain must not free a quarantined node. */
    priorStatus: text("prior_status", { enum: NODE_STATUSES }).notNull(),
    /** The override of lifecycle 5.8: go on without the agent's word. Who said so, and why; null until somebody does. */
    forcedAt: at("forced_at"),
    forcedBy: text("forced_by"),
    forcedReason: text("forced_reason"),
    /** The provisioning whose installed system MAAS was seen to give up; null while it was not. */
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
