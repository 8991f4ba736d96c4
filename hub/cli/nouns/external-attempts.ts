import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const EXTERNAL_ATTEMPTS = {
  plural: "external-attempts",
  singular: "external-attempt",
  short: ["ext"],
  about: "attempts of external systems to provision hosts",
  lists: ["listExternalAttempts"],
  reads: ["getExternalAttempt"],
  id: "id",
  label: "hostname",
  columns: [
    col("HOST", "hostname"),
    col("NO", "number"),
    col("PROVISIONER", "provisioner"),
    col("STATUS", "status"),
    col("STEP", "step"),
    age("AGE", "begun_at"),
    col("REASON", "reason"),
    { ...SITE, wide: true },
    wide("AGENT", "agent"),
    wide("NETWORK", "network_owned_by"),
    wide("HOLDER", "holder"),
    wide("ID", "id"),
  ],
  events: ["node.external_attempt.changed"],
} as const satisfies Noun;
