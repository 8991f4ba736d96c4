import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { DECOMMISSION_MODES } from "../../../shared/workflow-status.ts";
import { check, index, integer, pgTable, text, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";
import { workflows } from "./workflows.ts";

/**
 * The operator's request for a decommission (lifecycle 5.7). The decommission's progress is in the `workflows` row with the decommission's id, and
 * its history is in the events of that row.
 */
export const nodeDecommissions = pgTable(
  "node_decommissions",
  {
    decommissionId: uuid("decommission_id")
      .$type<WorkflowId>()
      .primaryKey()
      .references(() => workflows.id),
    /** The column `node_id` has no foreign key, because the record of the decommission outlives the node. */
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    siteId: uuid("site_id").$type<SiteId>(),
    hostname: text("hostname").notNull(),
    maasSystemId: text("maas_system_id"),
    mode: text("mode", { enum: DECOMMISSION_MODES }).notNull(),
    reason: text("reason").notNull(),
    /**
     * The node's status when the decommission was requested. The node's earlier status matters, e.g. because the cancel of a drain must not put a
     * quarantined node back into service.
     */
    priorStatus: text("prior_status", { enum: NODE_STATUSES }).notNull(),
    /**
     * The owner of the node's quarantine at the time when the decommission was requested. After a reimage, a quarantine that a person had set is
     * restored (decision N4).
     */
    priorQuarantinedBy: text("prior_quarantined_by"),
    /**
     * The time when an operator forced the decommission to continue without the agent's answer (lifecycle 5.8). `forced_at` is null until an operator
     * forces the decommission.
     */
    forcedAt: at("forced_at"),
    forcedBy: text("forced_by"),
    forcedReason: text("forced_reason"),
    /** The generation of the node whose installed system MAAS has released. `released_generation` is null while Muster has seen no release. */
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
