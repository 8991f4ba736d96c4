import { NETWORK_OWNERS } from "../../../shared/external-attempt.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { ONBOARDING_MODES } from "../../../shared/onboarding-mode.ts";
import { boolean, check, index, integer, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
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
    /** The place of the host at its site, as a person entered it; null if nobody entered one. */
    room: text("room"),
    rack: text("rack"),
    unit: integer("unit"),
    /**
     * The asset tag: the number of the host in its owner's inventory, which people search for and sanitization records name; null if nobody entered
     * one.
     */
    assetTag: text("asset_tag"),
    /** The number of changes of the location and the asset tag by people, which is the node's version when a person changes the node. */
    locationVersion: integer("location_version").notNull().default(0),
    status: text("status", { enum: NODE_STATUSES }).notNull(),
    onboardingMode: text("onboarding_mode", { enum: ONBOARDING_MODES }).notNull(),
    /** The party that runs the host's network, which may be another party than the one that provisions the host. */
    networkOwnedBy: text("network_owned_by", { enum: NETWORK_OWNERS }).notNull().default("muster"),
    /** False for a host on which its owner runs no agent of Muster, so that other sources must report its conditions. */
    runsAgent: boolean("runs_agent").notNull().default(true),
    accessMethod: text("access_method").notNull().default("node_agent"),
    sshUsername: text("ssh_username").notNull().default("root"),
    generation: integer("generation").notNull().default(0),
    /** The deadlines of a readiness policy count from `generation_began_at`. */
    generationBeganAt: at("generation_began_at").notNull().default(sql`now()`),
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
    check("nodes_onboarding_mode_check", oneOf("onboarding_mode", ONBOARDING_MODES)),
    check("nodes_network_owned_by_check", oneOf("network_owned_by", NETWORK_OWNERS)),
    check("nodes_operation_check", sql`"status" not in ('draining', 'removing') or "operation_id" is not null`),
    uniqueIndex("nodes_live_hostname_key").on(t.siteId, t.hostname).where(sql`"status" <> 'deleted'`),
    check("nodes_unit_check", sql`"unit" is null or "rack" is not null`),
    // Each sort order of the list of nodes ends with the node's id, and the database index for the order has the id as its last column. Most requests
    // for a list of nodes have a filter and sort the nodes by hostname.
    index("nodes_hostname_idx").on(t.hostname, t.id),
    index("nodes_status_idx").on(t.status, t.hostname, t.id),
    index("nodes_site_idx").on(t.siteId, t.hostname, t.id),
    index("nodes_sku_idx").on(t.sku, t.hostname, t.id),
    index("nodes_location_idx").on(
      sql`coalesce("room", '')`,
      sql`coalesce("rack", '')`,
      sql`coalesce("unit", 0)`,
      t.hostname,
      t.id,
    ),
    index("nodes_rack_idx").on(t.rack).where(sql`"rack" is not null`),
    index("nodes_created_idx").on(t.createdAt, t.id),
  ],
);
export type Node = typeof nodes.$inferSelect;
