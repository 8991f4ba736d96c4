import { age, col, type Noun, wide } from "./noun.ts";

export const SKUS = {
  plural: "skus",
  singular: "sku",
  short: [],
  about: "kinds of hosts",
  lists: ["listSkus"],
  reads: ["getSku"],
  id: "id",
  label: "id",
  columns: [
    col("ID", "id"),
    col("STATUS", "status"),
    col("VENDOR", "gpu_vendor"),
    col("MODEL", "gpu_model"),
    col("GPUS", "gpus_total"),
    age("AGE", "created_at"),
    wide("DESCRIPTION", "description"),
  ],
  events: [],
} as const satisfies Noun;
