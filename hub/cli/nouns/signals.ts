import { age, col, type Noun, wide } from "./noun.ts";

export const SIGNALS = {
  plural: "signals",
  singular: "signal",
  short: ["sig"],
  about: "readiness signals of external systems, and what became of each",
  lists: ["listSignals"],
  reads: [],
  id: "id",
  label: "signal_id",
  columns: [
    col("SENDER", "sender"),
    col("SIGNAL", "signal_id"),
    col("OUTCOME", "outcome"),
    col("DETAIL", "detail"),
    age("RECEIVED", "received_at"),
    wide("NODE ID", "node_id"),
    wide("GENERATION", "generation"),
    wide("PARKED UNTIL", "parked_until"),
    wide("ID", "id"),
  ],
  events: [],
} as const satisfies Noun;
