import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const ALLOCATIONS = {
  plural: "allocations",
  singular: "allocation",
  short: ["al"],
  about: "nodes that tenants use or have used",
  lists: ["listAllocations"],
  reads: ["getAllocation"],
  id: "id",
  label: "hostname",
  columns: [
    col("HOSTNAME", "hostname"),
    col("TENANT", "tenant"),
    col("LOGIN", "login_user"),
    col("ROOT", "root"),
    col("STATUS", "status"),
    SITE,
    age("AGE", "created_at"),
    col("ENDS", "ends_at"),
    wide("ENDED", "ended_at"),
    wide("WHY", "end_reason"),
    wide("BY", "created_by"),
    wide("ERROR", "error_code"),
    wide("ID", "id"),
  ],
  events: ["node.allocation.*"],
} as const satisfies Noun;
