import type { DriftAcknowledged, DriftDetails } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { boolean, index, jsonb, pgTable, sql, text, unique, uuid } from "../orm.ts";
import { at } from "./columns.ts";
import { nodes } from "./nodes.ts";

/** The binding of a node to its machine in MAAS, and the node's drift (lifecycle 6.5). */
export const nodeMaasState = pgTable(
  "node_maas_state",
  {
    nodeId: uuid("node_id")
      .$type<NodeId>()
      .primaryKey()
      .references(() => nodes.id, { onDelete: "cascade" }),
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    maasSystemId: text("maas_system_id").notNull(),
    ipmiIp: text("ipmi_ip").notNull(),
    /**
     * The machine's owner in MAAS when the node came into service; null before the node came into service. If MAAS names a different owner than
     * `maas_owner`, that owner has deployed the machine anew.
     */
    maasOwner: text("maas_owner"),
    lastMaasStatus: text("last_maas_status"),
    lastMaasPowerState: text("last_maas_power_state"),
    lastMaasIps: text("last_maas_ips").array(),
    lastReconciledAt: at("last_reconciled_at"),
    /** The time when a fact about the node changed that the reconciler has not judged yet, or null if there is no such fact. */
    reconcileDueAt: at("reconcile_due_at"),
    driftDetected: boolean("drift_detected").notNull().default(false),
    driftDetails: jsonb("drift_details").$type<DriftDetails>(),
    driftResolvedAt: at("drift_resolved_at"),
    /** The hub reports drift that a person has acknowledged only if the drift changes. */
    driftAcknowledged: jsonb("drift_acknowledged").$type<DriftAcknowledged>(),
    /**
     * The time when the reconciler put the node into quarantine; null if the node is not in a quarantine that the reconciler began. The reconciler
     * may lift only its own quarantine (decision N4).
     */
    quarantinedAt: at("quarantined_at"),
  },
  (t) => [
    unique("node_maas_state_machine_key").on(t.siteId, t.maasSystemId),
    index("node_maas_state_due_idx").on(t.siteId).where(sql`"reconcile_due_at" is not null`),
    // A readiness signal may name a node by its MAAS system id without a site.
    index("node_maas_state_system_idx").on(t.maasSystemId),
    index("node_maas_state_drift_idx").on(t.siteId).where(sql`"drift_detected"`),
  ],
);
export type NodeMaasState = typeof nodeMaasState.$inferSelect;
