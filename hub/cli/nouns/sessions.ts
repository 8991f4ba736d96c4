import { age, col, type Noun, wide } from "./noun.ts";

export const SESSIONS = {
  plural: "sessions",
  singular: "session",
  short: ["se"],
  about: "sessions of people on the page",
  lists: ["listSessions"],
  reads: [],
  id: "id",
  label: "name",
  columns: [
    col("NAME", "name"),
    col("ADDRESS", "address"),
    age("USED", "last_used_at"),
    col("EXPIRES", "expires_at"),
    col("ID", "id"),
    wide("SUBJECT", "subject"),
    wide("BROWSER", "user_agent"),
  ],
  events: [],
} as const satisfies Noun;
