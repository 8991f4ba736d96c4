import type { NodeId } from "../../../shared/ids.ts";
import { jsonb, pgTable, sql, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** Code that reads a node's inventory parses the stored JSON with the schema `Inventory`. */
export const nodeInventories = pgTable("node_inventories", {
  nodeId: uuid("node_id").$type<NodeId>().primaryKey(),
  inventory: jsonb("inventory").notNull(),
  reportedAt: at("reported_at").notNull().default(sql`now()`),
});
export type NodeInventory = typeof nodeInventories.$inferSelect;
