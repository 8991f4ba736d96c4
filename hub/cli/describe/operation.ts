import type { Item } from "../hub.ts";
import { age, col } from "../nouns/noun.ts";
import { adviceOf } from "./parts.ts";
import { type Described, factsOf } from "./section.ts";

const FACTS = [
  ["hostname", "hostname"],
  ["id", "id"],
  ["mode", "mode"],
  ["status", "status"],
  ["stage", "current_stage"],
  ["attempt", "current_attempt"],
  ["waiting for", "waiting_for"],
  ["deadline of the stage", "stage_deadline"],
  ["pending verb", "pending_verb"],
  ["failure", "failure_class"],
  ["error", "error_code"],
  ["message", "error_message"],
  ["BMC", "ipmi_ip"],
  ["MAAS system id", "maas_system_id"],
  ["batch", "batch_id"],
  ["node", "node_id"],
  ["reason", "reason"],
  ["requested by", "requested_by"],
  ["requested", "requested_at"],
  ["started", "started_at"],
  ["completed", "completed_at"],
] as const;
const EVENTS = [
  age("TIME", "occurred_at"),
  col("STAGE", "stage"),
  col("ATTEMPT", "attempt"),
  col("STATUS", "status"),
  col("MESSAGE", "message"),
];

/** An onboarding or a decommission with its history. */
export function describeOperation(title: string, operation: Item): Described {
  const id = operation["onboarding_id"] ?? operation["decommission_id"];
  return {
    sections: [
      { title, facts: factsOf({ ...operation, id }, FACTS) },
      { title: "What to do", lines: adviceOf([{ kind: title, ...operation }]) },
      { title: "History", columns: EVENTS, rows: operation["events"] as Item[] },
    ],
    answer: operation,
  };
}
