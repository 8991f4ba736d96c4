import { age, col, type Noun, wide } from "./noun.ts";

export const WARNINGS = {
  plural: "warnings",
  singular: "warning",
  short: ["wa"],
  about: "MAAS tokens and BMC logins that do not work or that nothing uses",
  lists: ["listMaasSiteCredentialWarnings"],
  reads: [],
  parent: { flag: "site", list: "listMaasSites" },
  id: "credential",
  label: "credential",
  columns: [
    col("CREDENTIAL", "credential"),
    col("REASON", "reason"),
    age("SINCE", "since"),
    col("MESSAGE", "message"),
    wide("OVERRIDE", "override_id"),
  ],
  events: ["site.credential.warning"],
} as const satisfies Noun;
