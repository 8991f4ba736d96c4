import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const OPERATIONS = {
  plural: "operations",
  singular: "operation",
  short: ["op"],
  about: "onboardings and decommissions in one list",
  lists: ["listOperations"],
  reads: ["getOnboarding", "getDecommission"],
  id: "operation_id",
  label: "hostname",
  columns: [
    col("HOSTNAME", "hostname"),
    col("KIND", "kind"),
    col("STATUS", "status"),
    col("STAGE", "current_stage"),
    col("FAILURE", "failure_class"),
    SITE,
    age("REQUESTED", "requested_at"),
    col("WAITING FOR", "waiting_for"),
    wide("ATTEMPT", "current_attempt"),
    wide("DEADLINE", "stage_deadline"),
    wide("VERB", "next_verb"),
    wide("BY", "requested_by"),
    wide("BATCH", "batch_id"),
    wide("ID", "operation_id"),
  ],
  events: ["node.onboarding.*", "node.decommission.*"],
} as const satisfies Noun;
