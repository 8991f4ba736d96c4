import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const INSTANCES = {
  plural: "instances",
  singular: "instance",
  short: ["inst"],
  about: "open allocations as their tenants see them",
  lists: ["listInstances"],
  reads: ["getInstance"],
  id: "id",
  label: "hostname",
  columns: [
    col("HOST", "hostname"),
    SITE,
    col("TENANT", "tenant"),
    col("STATUS", "status"),
    col("REASON", "status_reason"),
    col("POWER", "power_state"),
    age("AGE", "created_at"),
    wide("RACK", "location.rack"),
    wide("ZONE", "zone"),
    wide("ADDRESS", "host"),
    wide("ID", "id"),
  ],
  events: [],
} as const satisfies Noun;
