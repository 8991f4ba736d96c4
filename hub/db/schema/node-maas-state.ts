import type { DriftAcknowledged, DriftDetails } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { boolean, index, jsonb, pgTable, sql, text, unique, uuid } from "../orm.ts";
import { at } from "./columns.ts";
import { nodes } from "./nodes.ts";

/** The runtime binding of a node to its MAAS machine, and its drift (lifecycle 6.5). */
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
    /** Who owned the machine in MAAS when the node came into service; null before. Another owner has deployed it anew. */
    maasOwner: text("maas_owner"),
    lastMaasStatus: text("last_maas_status"),
    lastMaasPowerState: text("last_maas_power_state"),
    lastMaasIps: text("last_maas_ips").array(),
    lastReconciledAt: at("last_reconciled_at"),
    /** Since when something that the reconciler judges has changed and was not judged yet; a sweep judges all. */
    reconcileDueAt: at("reconcile_due_at"),
    driftDetected: boolean("drift_detected").notNull().default(false),
    driftDetails: jsonb("drift_details").$type<DriftDetails>(),
    driftResolvedAt: at("drift_resolved_at"),
    /** A drift that a person knows of: it is not raised again while it is the same. */
    driftAcknowledged: jsonb("drift_acknowledged").$type<DriftAcknowledged>(),
    /** Set while a quarantine is the reconciler's own; only such a one may it lift (decision N4). */
    quarantinedAt: at("quarantined_at"),
  },
  (t) => [
    unique("node_maas_state_machine_key").on(t.siteId, t.maasSystemId),
    index("node_maas_state_due_idx").on(t.siteId).where(sql`"reconcile_due_at" is not null`),
    index("node_maas_state_drift_idx").on(t.siteId).where(sql`"drift_detected"`),
  ],
);
export type NodeMaasState = typeof nodeMaasState.$inferSelect;
