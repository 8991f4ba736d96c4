import { age, col, type Noun, wide } from "./noun.ts";

export const SITES = {
  plural: "sites",
  singular: "site",
  short: ["si"],
  about: "sites, each run by a MAAS region",
  lists: ["listMaasSites"],
  reads: ["getMaasSite"],
  id: "id",
  label: "name",
  columns: [
    col("NAME", "name"),
    col("STATUS", "status"),
    col("REGION", "region_code"),
    col("MAAS", "api_base_url"),
    age("AGE", "created_at"),
    wide("PXE", "pxe_iface"),
    wide("VLAN", "pxe_vlan_vid"),
    wide("USER", "deploy_user"),
    wide("PROFILE", "default_profile_id"),
    wide("ID", "id"),
  ],
  events: ["site.*"],
} as const satisfies Noun;
