import type { SiteId } from "../../../shared/ids.ts";
import type { MachineDetails } from "../../../shared/machine-details.ts";
import { boolean, index, integer, jsonb, pgTable, primaryKey, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * SQL for the MAC addresses, the hardware UUID and the serial number of a machine in lower case, by which people look for a host. This SQL text stays
 * exactly as the index `maas_machines_search_idx` has it, because PostgreSQL uses an index of an expression only for the same expression.
 */
export const machineSearchTerms = sql`lower((jsonb_path_query_array("details", '$.macs[*]') || jsonb_path_query_array("details", '$.hardware_uuid') || jsonb_path_query_array("details", '$.serial'))::text)::jsonb`;

/**
 * The last known state of each machine in MAAS, as the hub that polls the site's MAAS read it. The table `maas_machines` stores only those fields of
 * a machine that Muster uses.
 */
export const maasMachines = pgTable(
  "maas_machines",
  {
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    systemId: text("system_id").notNull(),
    hostname: text("hostname").notNull(),
    /** Code must compare MAAS's status codes, never the status names (decision M2). */
    status: integer("status").notNull(),
    statusName: text("status_name").notNull(),
    statusMessage: text("status_message").notNull(),
    errorDescription: text("error_description").notNull(),
    powerState: text("power_state").notNull(),
    owner: text("owner"),
    locked: boolean("locked").notNull(),
    ipAddresses: text("ip_addresses").array().notNull(),
    /** The column `interface_addresses` is empty if the hub has not read the machine's network interfaces from MAAS yet. */
    interfaceAddresses: jsonb("interface_addresses")
      .$type<{ interface: string; boots: boolean; address: string }[]>()
      .notNull()
      .default([]),
    enableHwSync: boolean("enable_hw_sync"),
    lastSync: at("last_sync"),
    nextSync: at("next_sync"),
    syncIntervalSeconds: integer("sync_interval_seconds"),
    /** True after MAAS answered 404 to a direct read of the machine (decision M14). */
    absent: boolean("absent").notNull().default(false),
    /** The column `details` holds an empty object until a hub that knows the column has read the machine. */
    details: jsonb("details").$type<MachineDetails | Record<string, never>>().notNull().default({}),
    observedAt: at("observed_at").notNull().default(sql`now()`),
  },
  (t) => [
    primaryKey({ columns: [t.siteId, t.systemId] }),
    index("maas_machines_search_idx").using("gin", sql`(${machineSearchTerms})`),
  ],
);
export type MaasMachineRow = typeof maasMachines.$inferSelect;
