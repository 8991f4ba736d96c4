import { integer, pgTable, text } from "../orm.ts";

/**
 * The highest uid that a tenant's account on a machine may have had. A machine has one row for each name by which the hub knows it, so that the uid
 * outlives the node, its allocations and the machine's disks.
 */
export const tenantUids = pgTable("tenant_uids", {
  /** `node:` and the id of a node, `maas:` and the machine's id in MAAS, or `uuid:` and the UUID of the system in the inventory. */
  machine: text("machine").primaryKey(),
  highestUid: integer("highest_uid").notNull(),
  /**
   * The node and generation whose agent last made an account. The agent of that system knows all uids up to `highest_uid` itself. The column is empty
   * if no such agent is known.
   */
  madeBy: text("made_by").notNull().default(""),
});
