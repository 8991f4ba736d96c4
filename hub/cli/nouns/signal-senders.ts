import { age, col, type Noun, wide } from "./noun.ts";

export const SIGNAL_SENDERS = {
  plural: "signal-senders",
  singular: "signal-sender",
  short: ["sender", "senders"],
  about: "systems that post signed readiness signals",
  lists: ["listSignalSenders"],
  reads: [],
  id: "id",
  label: "name",
  columns: [
    col("NAME", "name"),
    col("STATUS", "status"),
    age("USED", "last_used_at"),
    age("AGE", "created_at"),
    col("PATH", "path"),
    wide("BY", "created_by"),
    wide("SITES", "site_ids"),
    wide("ID", "id"),
  ],
  events: ["signal_sender.changed"],
} as const satisfies Noun;
