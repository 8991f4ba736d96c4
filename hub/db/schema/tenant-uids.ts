import { integer, pgTable, text } from "../orm.ts";

/**
 * The highest uid that a tenant's account on a machine may have had. A machine has one row for each name by which the hub knows it, so that the uid
 * outlives the node, its allocations and the machine's disks.
 */
export const tenantUids = pgTable("tenant_uids", {
  /** A name of a machine: `node:` and the node's id, `maas:` and the machine's id in MAAS, or `uuid:` and the system's UUID in the inventory. */
  machine: text("machine").primaryKey(),
  highestUid: integer("highest_uid").notNull(),
  /**
   * The node and generation whose agent last made an account on the machine. The agent of the node and generation in `made_by` knows all uids up to
   * `highest_uid` itself. The column `made_by` is empty if the hub knows no agent that made an account on the machine.
   */
  madeBy: text("made_by").notNull().default(""),
});
