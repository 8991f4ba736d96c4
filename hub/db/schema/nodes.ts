import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { check, index, integer, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, createdAt, oneOf, updatedAt } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/**
 * The record of a node contains no facts from a provider of machines such as MAAS (lifecycle 8.1). Only the function `moveNode` writes a node's
 * `status`. The hub computes a node's `schedulable` and never stores it. The facts from MAAS about the node's machine are in `node_maas_state`
 * (lifecycle 12, question 1).
 */
export const nodes = pgTable(
  "nodes",
  {
    id: uuid("id").$type<NodeId>().primaryKey(),
    hostname: text("hostname").notNull(),
    siteId: uuid("site_id")
      .$type<SiteId>()
      .references(() => maasSites.id),
    host: text("host"),
    port: integer("port").notNull().default(22),
    sku: text("sku").notNull(),
    gpusTotal: integer("gpus_total").notNull(),
    regionCode: text("region_code").notNull(),
    status: text("status", { enum: NODE_STATUSES }).notNull(),
    onboardingMode: text("onboarding_mode", { enum: ["maas", "manual"] }).notNull(),
    accessMethod: text("access_method").notNull().default("node_agent"),
    sshUsername: text("ssh_username").notNull().default("root"),
    generation: integer("generation").notNull().default(0),
    cordonReason: text("cordon_reason"),
    cordonOwner: text("cordon_owner"),
    /** The owner of the node's quarantine, which is `operator` if a person took the quarantine over, and null without a quarantine. */
    quarantinedBy: text("quarantined_by"),
    /** The decommission that owns the node while its status is draining or removing (decision N3). */
    operationId: uuid("operation_id"),
    lastAgentContactAt: at("last_agent_contact_at"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    check("nodes_status_check", oneOf("status", NODE_STATUSES)),
    check("nodes_onboarding_mode_check", oneOf("onboarding_mode", ["maas", "manual"])),
    check("nodes_operation_check", sql`"status" not in ('draining', 'removing') or "operation_id" is not null`),
    uniqueIndex("nodes_live_hostname_key").on(t.siteId, t.hostname).where(sql`"status" <> 'deleted'`),
    index("nodes_status_idx").on(t.status),
  ],
);
export type Node = typeof nodes.$inferSelect;
