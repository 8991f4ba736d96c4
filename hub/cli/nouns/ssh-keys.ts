import { age, col, type Noun, wide } from "./noun.ts";

export const SSH_KEYS = {
  plural: "ssh-keys",
  singular: "ssh-key",
  short: ["sshkey", "sshkeys"],
  about: "public SSH keys of tenants",
  lists: ["listSshKeys"],
  reads: ["getSshKey"],
  id: "id",
  label: "name",
  columns: [
    col("NAME", "name"),
    col("TENANT", "tenant"),
    col("TYPE", "type"),
    col("FINGERPRINT", "fingerprint"),
    age("AGE", "created_at"),
    wide("BY", "created_by"),
    wide("SITES", "site_ids"),
    wide("ID", "id"),
  ],
  events: [],
} as const satisfies Noun;
