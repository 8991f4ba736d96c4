import type { SiteId } from "../../../shared/ids.ts";
import { bigint, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** One row a site: which hub watches it, how far it has read the events feed, and how the last look went. */
export const maasSiteWatches = pgTable("maas_site_watches", {
  siteId: uuid("site_id").$type<SiteId>().primaryKey(),
  leaseOwner: uuid("lease_owner"),
  leaseUntil: at("lease_until"),
  fence: bigint("fence", { mode: "number" }).notNull().default(0),
  /** Highest event id seen; the next query starts an overlap window below it (decision M8). Null before the first look. */
  eventCursor: bigint("event_cursor", { mode: "number" }),
  /** What that event said: with another word it is another event, of a region whose ids went back and have come as far again. */
  eventMark: text("event_mark"),
  lastPollAt: at("last_poll_at"),
  lastSweepAt: at("last_sweep_at"),
  wakeRequestedAt: at("wake_requested_at"),
  /** Somebody asks that all machines be read and all nodes be judged now. */
  sweepRequestedAt: at("sweep_requested_at"),
  /** Machines of the last list that have a shape which we do not know: they are there, and nothing of them is seen. */
  unreadableMachines: integer("unreadable_machines").notNull().default(0),
  /** Those of them that say who they are: of them nothing was learnt by the last list. */
  unreadableSystemIds: text("unreadable_system_ids").array().notNull().default(sql`'{}'::text[]`),
  consecutiveFailures: integer("consecutive_failures").notNull().default(0),
  lastErrorCode: text("last_error_code"),
  lastErrorAt: at("last_error_at"),
});
export type MaasSiteWatch = typeof maasSiteWatches.$inferSelect;
