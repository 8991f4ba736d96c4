import { age, col, type Noun, wide } from "./noun.ts";

export const EVENTS = {
  plural: "events",
  singular: "event",
  short: ["ev"],
  about: "domain events, oldest first",
  lists: ["listDomainEvents"],
  reads: [],
  id: "id",
  label: "id",
  columns: [
    age("TIME", "time"),
    col("TYPE", "type"),
    col("SUBJECT", "subject"),
    col("DATA", "data"),
    wide("CURSOR", "cursor"),
    wide("ID", "id"),
  ],
  events: ["*"],
} as const satisfies Noun;
