import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { DECOMMISSION_MODES } from "../../../shared/workflow-status.ts";
import { check, index, integer, jsonb, pgTable, text, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";
import { workflows } from "./workflows.ts";

/**
 * Names a secret that a full decommission removes, or a BMC login that looks like the host's and that the decommission keeps. A secret of the kind
 * `user_data` is the rendered user-data of the host's first boot, and a secret of the kind `bmc_login` is a BMC login override. A `ChosenSecret`
 * never contains the secret itself.
 */
export interface ChosenSecret {
  readonly kind: "user_data" | "bmc_login";
  readonly path: string;
  /** The id, the selector and the last change of a BMC login; the time of the change has PostgreSQL's microseconds. */
  readonly login: { readonly id: string; readonly selector: string; readonly changedAt: string } | null;
  /**
   * The version that the secret had in the secret store when the operation chose the secret. The version `absent` means that the store had no secret
   * under the path, and `unreadable` means that the secret was damaged.
   */
  readonly version: string;
  /**
   * The outcome `chosen` means that the operation has not touched the secret yet. The outcome `removing` means that the operation has disabled the
   * login and is removing the login's secret. The outcomes `removed` and `kept` are final.
   */
  readonly outcome: "chosen" | "removing" | "removed" | "kept";
  readonly reason: string | null;
}

/** The operator's request for a decommission (lifecycle 5.7). The decommission's progress is in the row of `workflows` with the decommission's id. */
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
     * The node's status when the decommission was requested. The hub needs the node's prior status because, for example, the cancel of a drain must
     * not put a quarantined node back into service.
     */
    priorStatus: text("prior_status", { enum: NODE_STATUSES }).notNull(),
    /**
     * The owner of the node's quarantine when the decommission was requested. After a reimage, a quarantine that a person had set is restored
     * (decision N4).
     */
    priorQuarantinedBy: text("prior_quarantined_by"),
    /** The time when an operator forced the decommission to continue without the agent's answer (lifecycle 5.8). */
    forcedAt: at("forced_at"),
    forcedBy: text("forced_by"),
    forcedReason: text("forced_reason"),
    /** The generation of the node whose installed system MAAS has released; null while Muster has seen no release. */
    releasedGeneration: integer("released_generation"),
    /**
     * The generation whose installed system a reinstall has released in MAAS. The hub does not store the reinstalled generation in
     * `released_generation`, because the tenancy goes on: code that looks there for the end of a tenant's use, also in a hub of an older version,
     * must not find it (decision N11).
     */
    reinstalledGeneration: integer("reinstalled_generation"),
    /**
     * The secrets that a full decommission removes, with the outcome for each secret. The list of secrets outlives the verb `restart_clean`, so that
     * a restarted decommission removes no other secret.
     */
    secrets: jsonb("secrets").$type<readonly ChosenSecret[]>(),
    createdAt: createdAt(),
  },
  (t) => [
    check("node_decommissions_mode_check", oneOf("mode", DECOMMISSION_MODES)),
    check("node_decommissions_prior_status_check", oneOf("prior_status", NODE_STATUSES)),
    index("node_decommissions_node_idx").on(t.nodeId),
    index("node_decommissions_hostname_idx").on(t.hostname),
  ],
);
export type NodeDecommission = typeof nodeDecommissions.$inferSelect;
