import { age, col, type Noun, wide } from "./noun.ts";

export const DELIVERIES = {
  plural: "deliveries",
  singular: "delivery",
  short: ["de"],
  about: "deliveries of events to a webhook",
  lists: ["listWebhookDeliveries"],
  reads: [],
  parent: { flag: "webhook", list: null },
  id: "id",
  label: "id",
  columns: [
    col("EVENT", "event_type"),
    col("SUBJECT", "event_subject"),
    col("STATE", "state"),
    col("ATTEMPTS", "attempts"),
    col("ANSWER", "last_status"),
    col("ERROR", "last_error"),
    age("AGE", "created_at"),
    wide("NEXT", "next_attempt_at"),
    wide("ID", "id"),
  ],
  events: [],
} as const satisfies Noun;
