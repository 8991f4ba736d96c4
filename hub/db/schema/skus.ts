import type { SkuHardware } from "../../../shared/api/sites.ts";
import { check, integer, jsonb, pgTable, text } from "../orm.ts";
import { createdAt, oneOf, updatedAt } from "./columns.ts";

export const skus = pgTable(
  "skus",
  {
    id: text("id").primaryKey(),
    description: text("description").notNull(),
    gpuVendor: text("gpu_vendor", { enum: ["amd", "nvidia", "none"] }).notNull(),
    gpuModel: text("gpu_model").notNull(),
    gpusTotal: integer("gpus_total").notNull(),
    /** The hardware that a host of the SKU must have besides its GPUs; an empty object asks for nothing. */
    hardware: jsonb("hardware").$type<SkuHardware>().notNull().default({}),
    status: text("status", { enum: ["active", "disabled"] })
      .notNull()
      .default("active"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  () => [
    check("skus_gpu_vendor_check", oneOf("gpu_vendor", ["amd", "nvidia", "none"])),
    check("skus_status_check", oneOf("status", ["active", "disabled"])),
  ],
);
export type Sku = typeof skus.$inferSelect;
