import { age, col, type Noun, SITE, wide } from "./noun.ts";

export const BREAKERS = {
  plural: "breakers",
  singular: "breaker",
  short: ["br"],
  about: "breakers, which hold changes of many nodes back",
  lists: ["listBreakers"],
  reads: [],
  id: "site_id",
  label: "site_id",
  columns: [
    SITE,
    col("KIND", "kind"),
    col("STATE", "state"),
    col("WOULD MOVE", "would_move"),
    col("MOVED", "moved"),
    col("LIMIT", "move_limit"),
    col("IN SERVICE", "in_service"),
    age("TRIPPED", "tripped_at"),
    wide("RESET BY", "reset_by"),
    wide("RESET REASON", "reset_reason"),
  ],
  events: ["site.breaker.*"],
} as const satisfies Noun;
