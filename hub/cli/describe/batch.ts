import type { Item } from "../hub.ts";
import { age, col } from "../nouns/noun.ts";
import { type Described, factsOf, type Section } from "./section.ts";

const FACTS = [
  ["id", "batch_id"],
  ["kind", "kind"],
  ["mode", "mode"],
  ["done", "done"],
  ["total", "total"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["cancelled", "cancelled"],
  ["refused", "refused"],
  ["in each status", "counts"],
  ["stops after failures", "stop_after_failures"],
  ["paused", "paused"],
  ["requested by", "requested_by"],
  ["requested", "requested_at"],
  ["started", "started_at"],
  ["ended", "ended_at"],
] as const;
const HOSTS = [
  col("HOSTNAME", "hostname"),
  col("STATUS", "status"),
  col("STAGE", "current_stage"),
  col("FAILURE", "failure_class"),
  age("CHANGED", "updated_at"),
  col("WAITING FOR", "waiting_for"),
];
const REFUSALS = [col("HOSTNAME", "hostname"), col("CODE", "code"), col("MESSAGE", "message")];

/** A batch with its failures, each with what to do about it, and its hosts. */
export function describeBatch(batch: Item, hosts: readonly Item[]): Described {
  const failures = (batch["failures"] ?? []) as Item[];
  const sections: Section[] = [
    { title: "Batch", facts: factsOf(batch, FACTS) },
    {
      title: "What to do",
      lines: failures.map(
        (one) => `${String(one["failure_class"])} (${String(one["count"])}): ${String(one["next_action"])}`,
      ),
    },
    { title: "Hosts", columns: HOSTS, rows: hosts },
  ];
  const refusals = (batch["refusals"] ?? []) as Item[];
  if (refusals.length > 0) sections.push({ title: "Refused", columns: REFUSALS, rows: refusals });
  return { sections, answer: { batch, hosts } };
}
