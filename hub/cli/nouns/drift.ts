import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const DRIFT = {
  plural: "drift",
  singular: "drift",
  short: ["dr"],
  about: "nodes that differ from their machines in MAAS",
  lists: ["listDrift"],
  reads: [],
  id: "node_id",
  label: "hostname",
  columns: [
    col("HOSTNAME", "hostname"),
    col("RULE", "drift_details.rule"),
    col("SEVERITY", "drift_details.severity"),
    col("NODE", "node_status"),
    SITE,
    age("SINCE", "drift_details.detected_at"),
    col("MESSAGE", "drift_details.message"),
    wide("MAAS", "maas_system_id"),
    wide("POWER", "last_maas_power_state"),
    wide("ACKNOWLEDGED", "acknowledged.reason"),
    wide("ID", "node_id"),
  ],
  events: ["node.drift.*"],
} as const satisfies Noun;
