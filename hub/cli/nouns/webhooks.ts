import { age, col, type Noun, wide } from "./noun.ts";

export const WEBHOOKS = {
  plural: "webhooks",
  singular: "webhook",
  short: ["wh"],
  about: "addresses to which the hub sends events",
  lists: ["listWebhooks"],
  reads: ["getWebhook"],
  id: "id",
  label: "url",
  columns: [
    col("URL", "url"),
    col("ACTIVE", "active"),
    col("PENDING", "pending"),
    col("DEAD", "dead"),
    age("AGE", "created_at"),
    col("ID", "id"),
    wide("TYPES", "types"),
    wide("DESCRIPTION", "description"),
    wide("STOPPED", "disabled_reason"),
  ],
  events: [],
} as const satisfies Noun;
