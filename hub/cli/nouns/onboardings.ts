import { col, type Noun, wide } from "./noun.ts";
import { PROGRESS_COLUMNS } from "./progress-columns.ts";

export const ONBOARDINGS = {
  plural: "onboardings",
  singular: "onboarding",
  short: ["onb"],
  about: "hosts on their way into service",
  lists: ["listOnboardings"],
  reads: ["getOnboarding"],
  id: "onboarding_id",
  label: "hostname",
  columns: [col("HOSTNAME", "hostname"), ...PROGRESS_COLUMNS, wide("ID", "onboarding_id")],
  events: ["node.onboarding.*"],
} as const satisfies Noun;
