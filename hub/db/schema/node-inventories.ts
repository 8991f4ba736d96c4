import type { HostGpuSizes } from "../../../shared/gpu-sizes.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { index, jsonb, pgTable, sql, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** Code that reads a node's inventory parses the stored JSON with the schema `Inventory`. */
export const nodeInventories = pgTable(
  "node_inventories",
  {
    nodeId: uuid("node_id").$type<NodeId>().primaryKey(),
    inventory: jsonb("inventory").notNull(),
    /** The MAC addresses, disk serial numbers and the system UUID in lower case, by which people look for a host. */
    searchTerms: jsonb("search_terms").generatedAlwaysAs(
      sql`lower((jsonb_path_query_array(inventory, '$.interfaces[*].mac') || jsonb_path_query_array(inventory, '$.disks[*].serial') || jsonb_path_query_array(inventory, '$.system.uuid'))::text)::jsonb`,
    ),
    /**
     * The largest GPU memory sizes in the node's inventories from before a tenant's use. The column `gpu_sizes` is null if no inventory from before a
     * tenant's use has come since the column exists.
     */
    gpuSizes: jsonb("gpu_sizes").$type<HostGpuSizes>(),
    reportedAt: at("reported_at").notNull().default(sql`now()`),
  },
  (t) => [index("node_inventories_search_idx").using("gin", t.searchTerms)],
);
export type NodeInventory = typeof nodeInventories.$inferSelect;
