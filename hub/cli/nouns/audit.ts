import { age, col, type Noun, wide } from "./noun.ts";

export const AUDIT = {
  plural: "audit-entries",
  singular: "audit-entry",
  short: ["audit"],
  about: "who did what, newest first",
  lists: ["listAuditLogs"],
  reads: [],
  id: "id",
  label: "id",
  columns: [
    age("TIME", "occurred_at"),
    col("ACTOR", "actor"),
    col("ROLE", "role"),
    col("ACTION", "action"),
    col("TARGET", "target"),
    col("OUTCOME", "outcome"),
    col("ERROR", "error_code"),
    col("REASON", "reason"),
    wide("ADDRESS", "address"),
    wide("VIA", "via"),
    wide("REQUEST", "request_id"),
    wide("NUMBER", "sequence"),
    wide("ID", "id"),
  ],
  events: [],
} as const satisfies Noun;
