import { col, type Noun, wide } from "./noun.ts";
import { PROGRESS_COLUMNS } from "./progress-columns.ts";

export const OPERATIONS = {
  plural: "operations",
  singular: "operation",
  short: ["op"],
  about: "onboardings and decommissions in one list",
  lists: ["listOperations"],
  reads: ["getOnboarding", "getDecommission"],
  id: "operation_id",
  label: "hostname",
  columns: [col("HOSTNAME", "hostname"), col("KIND", "kind"), ...PROGRESS_COLUMNS, wide("ID", "operation_id")],
  events: ["node.onboarding.*", "node.decommission.*"],
} as const satisfies Noun;
