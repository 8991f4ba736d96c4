import { age, col, type Noun, wide } from "./noun.ts";

export const RECORDS = {
  plural: "records",
  singular: "record",
  short: ["rec"],
  about: "sanitization records, the evidence of cleanings",
  lists: ["listSanitizationRecords"],
  reads: ["getSanitizationRecord"],
  id: "record_id",
  label: "record_id",
  columns: [
    col("ID", "record_id"),
    col("HOSTNAME", "hostname"),
    col("NUMBER", "sequence"),
    col("TENANT", "tenant"),
    col("MODE", "mode"),
    col("TRUST", "trust"),
    col("VERDICT", "verdict"),
    age("AGE", "created_at"),
    wide("SIGNED", "signed_by_agent"),
    wide("ALLOCATION", "allocation_id"),
    wide("SHA256", "record_sha256"),
  ],
  events: ["node.allocation.*", "node.decommission.*"],
} as const satisfies Noun;
