import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const POWER_OVERRIDES = {
  plural: "power-overrides",
  singular: "power-override",
  short: ["po"],
  about: "BMC logins that differ from their site's",
  lists: ["listPowerCredentialOverrides"],
  reads: ["getPowerCredentialOverride"],
  parent: { flag: "site", list: "listMaasSites" },
  id: "id",
  label: "id",
  columns: [
    col("BY", "selector_type"),
    col("VALUE", "selector_value"),
    col("STATUS", "status"),
    SITE,
    age("USED", "last_used_at"),
    col("FAILURE", "last_failure_code"),
    col("WARNING", "warning"),
    wide("ID", "id"),
  ],
  events: ["site.credential.warning"],
} as const satisfies Noun;
