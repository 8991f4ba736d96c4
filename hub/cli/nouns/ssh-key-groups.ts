import { age, col, type Noun, wide } from "./noun.ts";

export const SSH_KEY_GROUPS = {
  plural: "ssh-key-groups",
  singular: "ssh-key-group",
  short: ["keygroup", "keygroups"],
  about: "groups of tenants' SSH keys, with whether the accounts have their keys",
  lists: ["listSshKeyGroups"],
  reads: ["getSshKeyGroup"],
  id: "id",
  label: "name",
  columns: [
    col("NAME", "name"),
    col("TENANT", "tenant"),
    col("STATUS", "status"),
    col("REASON", "status_reason"),
    col("USES", "allocations"),
    age("AGE", "created_at"),
    wide("DESCRIPTION", "description"),
    wide("KEYS", "key_ids"),
    wide("SITES", "site_ids"),
    wide("ID", "id"),
  ],
  events: ["node.allocation.*"],
} as const satisfies Noun;
