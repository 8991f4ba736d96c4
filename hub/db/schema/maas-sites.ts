import type { ProfileId, SiteId } from "../../../shared/ids.ts";
import { boolean, check, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { createdAt, oneOf, updatedAt } from "./columns.ts";

/**
 * Each row is a site, which is one MAAS region (lifecycle 3.1, 3.6). A site's secrets are in the secret store, and the database holds only the paths
 * of the secrets.
 */
export const maasSites = pgTable(
  "maas_sites",
  {
    id: uuid("id").$type<SiteId>().primaryKey().default(sql`gen_random_uuid()`),
    name: text("name").notNull().unique(),
    regionCode: text("region_code").notNull(),
    apiBaseUrl: text("api_base_url").notNull(),
    apiTokenVaultPath: text("api_token_vault_path"),
    defaultPowerCredsVaultPath: text("default_power_creds_vault_path"),
    deployPasswordVaultPath: text("deploy_password_vault_path"),
    pxeIface: text("pxe_iface").notNull(),
    pxeVlanVid: integer("pxe_vlan_vid").notNull(),
    nodePxeIface: text("node_pxe_iface").notNull(),
    deployUser: text("deploy_user").notNull(),
    deploySshIface: text("deploy_ssh_iface").notNull(),
    upstreamDnsServers: text("upstream_dns_servers").array().notNull(),
    defaultProfileId: uuid("default_profile_id").$type<ProfileId>(),
    /** Whether a tenant's report of a fault also counts as a request for a repair, without a request of an operator. */
    autoRepair: boolean("auto_repair").notNull().default(false),
    /** The number of repair claims of one machine within 30 days at which the hub refuses further repair requests for the machine. */
    repairAttemptLimit: integer("repair_attempt_limit").notNull().default(3),
    status: text("status", { enum: ["active", "disabled"] })
      .notNull()
      .default("active"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  () => [check("maas_sites_status_check", oneOf("status", ["active", "disabled"]))],
);
export type MaasSite = typeof maasSites.$inferSelect;
