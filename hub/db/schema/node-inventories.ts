import type { NodeId } from "../../../shared/ids.ts";
import { jsonb, pgTable, sql, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** What the agent last reported of its host; parsed with `Inventory` on read. */
export const nodeInventories = pgTable("node_inventories", {
  nodeId: uuid("node_id").$type<NodeId>().primaryKey(),
  inventory: jsonb("inventory").notNull(),
  reportedAt: at("reported_at").notNull().default(sql`now()`),
});
export type NodeInventory = typeof nodeInventories.$inferSelect;
