import { boolean, jsonb, pgTable, text, unique, uuid } from "drizzle-orm/pg-core";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
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
    lastMaasStatus: text("last_maas_status"),
    lastMaasPowerState: text("last_maas_power_state"),
    lastMaasIps: text("last_maas_ips").array(),
    lastReconciledAt: at("last_reconciled_at"),
    driftDetected: boolean("drift_detected").notNull().default(false),
    driftDetails: jsonb("drift_details"),
    driftResolvedAt: at("drift_resolved_at"),
  },
  (t) => [unique("node_maas_state_machine_key").on(t.siteId, t.maasSystemId)],
);
export type NodeMaasState = typeof nodeMaasState.$inferSelect;
