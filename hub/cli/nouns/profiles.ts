import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const PROFILES = {
  plural: "profiles",
  singular: "profile",
  short: ["pr"],
  about: "profiles of a site, which say how its hosts are installed and cleaned",
  lists: ["listMaasSiteProfiles"],
  reads: ["getMaasSiteProfile"],
  parent: { flag: "site", list: "listMaasSites" },
  id: "id",
  label: "name",
  columns: [
    col("NAME", "name"),
    SITE,
    col("STATUS", "status"),
    col("SERIES", "distro_series"),
    col("TURNOVER", "turnover_mode"),
    col("GPU CLAIM", "gpu_claim_level"),
    col("PARALLEL", "batch_max_parallel"),
    age("UPDATED", "updated_at"),
    wide("DESCRIPTION", "description"),
    wide("SECOND PERSON", "second_person"),
    wide("ID", "id"),
  ],
  events: [],
} as const satisfies Noun;
