import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const ONBOARDINGS = {
  plural: "onboardings",
  singular: "onboarding",
  short: ["onb"],
  about: "hosts on their way into service",
  lists: ["listOnboardings"],
  reads: ["getOnboarding"],
  id: "onboarding_id",
  label: "hostname",
  columns: [
    col("HOSTNAME", "hostname"),
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
    wide("ID", "onboarding_id"),
  ],
  events: ["node.onboarding.*"],
} as const satisfies Noun;
