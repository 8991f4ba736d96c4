import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const ROCE = {
  plural: "roce",
  singular: "roce-row",
  short: [],
  about: "addresses of hosts in the RoCE network",
  lists: ["listRoceAssignments"],
  reads: [],
  parent: { flag: "site", list: "listMaasSites" },
  id: "id",
  label: "hostname",
  columns: [
    col("HOSTNAME", "hostname"),
    col("INTERFACE", "interface"),
    col("ADDRESS", "ipv4_cidr"),
    SITE,
    age("UPDATED", "updated_at"),
    wide("ID", "id"),
  ],
  events: [],
} as const satisfies Noun;
