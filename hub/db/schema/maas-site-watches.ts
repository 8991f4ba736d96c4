import type { SiteId } from "../../../shared/ids.ts";
import { bigint, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** One row for each site: which hub watches the site, how far that hub has read MAAS's events, and how the last poll went. */
export const maasSiteWatches = pgTable("maas_site_watches", {
  siteId: uuid("site_id").$type<SiteId>().primaryKey(),
  leaseOwner: uuid("lease_owner"),
  leaseUntil: at("lease_until"),
  fence: bigint("fence", { mode: "number" }).notNull().default(0),
  /** Each query for MAAS's events begins somewhat below `event_cursor`, so that it overlaps with the query before (decision M8). */
  eventCursor: bigint("event_cursor", { mode: "number" }),
  /**
   * The content of the MAAS event with the id `event_cursor`. If MAAS later shows other content under the id `event_cursor`, the region's event ids
   * were reset.
   */
  eventMark: text("event_mark"),
  lastPollAt: at("last_poll_at"),
  lastSweepAt: at("last_sweep_at"),
  wakeRequestedAt: at("wake_requested_at"),
  /** The time when somebody last asked for a read of all machines of the site from MAAS; null if nobody waits for such a read. */
  sweepRequestedAt: at("sweep_requested_at"),
  /** The number of machines in MAAS that the hub could not parse, so that Muster knows nothing about them. */
  unreadableMachines: integer("unreadable_machines").notNull().default(0),
  /** The system ids of the machines in MAAS that the hub could not parse, as far as it could read the ids. */
  unreadableSystemIds: text("unreadable_system_ids").array().notNull().default(sql`'{}'::text[]`),
  consecutiveFailures: integer("consecutive_failures").notNull().default(0),
  lastErrorCode: text("last_error_code"),
  lastErrorAt: at("last_error_at"),
});
export type MaasSiteWatch = typeof maasSiteWatches.$inferSelect;
