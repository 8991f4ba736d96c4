import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const APPROVALS = {
  plural: "approvals",
  singular: "approval",
  short: ["ap"],
  about: "requests that need a second person",
  lists: ["listApprovals"],
  reads: ["getApproval"],
  id: "id",
  label: "id",
  columns: [
    col("ID", "id"),
    col("STATE", "state"),
    col("OPERATION", "operation"),
    SITE,
    col("BY", "requested_by"),
    age("REQUESTED", "requested_at"),
    col("EXPIRES", "expires_at"),
    col("DOES", "does"),
    wide("DECIDED BY", "decided_by"),
    wide("REASON", "decision_reason"),
  ],
  events: ["approval.*"],
} as const satisfies Noun;
