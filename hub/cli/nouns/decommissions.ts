import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const DECOMMISSIONS = {
  plural: "decommissions",
  singular: "decommission",
  short: ["dec"],
  about: "drains, cleanings, reimages, releases and removes of nodes",
  lists: ["listDecommissions"],
  reads: ["getDecommission"],
  id: "decommission_id",
  label: "hostname",
  columns: [
    col("HOSTNAME", "hostname"),
    col("MODE", "mode"),
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
    wide("ID", "decommission_id"),
  ],
  events: ["node.decommission.*"],
} as const satisfies Noun;
