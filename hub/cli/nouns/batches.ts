import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const BATCHES = {
  plural: "batches",
  singular: "batch",
  short: ["ba"],
  about: "batches of onboardings or decommissions",
  lists: ["listOnboardingBatches", "listDecommissionBatches"],
  reads: ["getOnboardingBatch", "getDecommissionBatch"],
  id: "batch_id",
  label: "batch_id",
  columns: [
    col("ID", "batch_id"),
    col("KIND", "kind"),
    col("MODE", "mode"),
    SITE,
    col("DONE", "done"),
    col("TOTAL", "total"),
    col("SUCCEEDED", "succeeded"),
    col("FAILED", "failed"),
    col("CANCELLED", "cancelled"),
    col("REFUSED", "refused"),
    age("REQUESTED", "requested_at"),
    wide("BY", "requested_by"),
    wide("COUNTS", "counts"),
    wide("PAUSED", "paused"),
  ],
  events: ["batch.*", "node.onboarding.*", "node.decommission.*"],
} as const satisfies Noun;
