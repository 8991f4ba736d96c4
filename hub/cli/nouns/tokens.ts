import { age, col, type Noun, wide } from "./noun.ts";

export const TOKENS = {
  plural: "tokens",
  singular: "token",
  short: ["to"],
  about: "API tokens",
  lists: ["listTokens"],
  reads: ["getToken"],
  id: "id",
  label: "name",
  columns: [
    col("NAME", "name"),
    col("ROLE", "role"),
    col("STATUS", "status"),
    col("TENANT", "tenant"),
    col("ENDS WITH", "last_four"),
    age("USED", "last_used_at"),
    col("EXPIRES", "expires_at"),
    wide("BY", "created_by"),
    wide("SITES", "site_ids"),
    wide("ID", "id"),
  ],
  events: ["token.changed"],
} as const satisfies Noun;
