import type { SiteId } from "../../../shared/ids.ts";
import { bigserial, index, integer, jsonb, pgTable, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * How the fleet stood at one time, in one row for each site that had nodes or waiting operations, and one row for everything without a site. The hubs
 * write all rows of one `sampled_at` together, so that a site without a row at that time had no nodes and no waiting operations.
 */
export const fleetSamples = pgTable(
  "fleet_samples",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    sampledAt: at("sampled_at").notNull(),
    siteId: uuid("site_id").$type<SiteId>(),
    /** The number of nodes by status, without the statuses that no node had. */
    nodes: jsonb("nodes").notNull().$type<Readonly<Record<string, number>>>(),
    schedulable: integer("schedulable").notNull(),
    /** The number of failed operations, which waited for a person. */
    waiting: integer("waiting").notNull(),
  },
  (t) => [index("fleet_samples_time_idx").on(t.sampledAt)],
);
