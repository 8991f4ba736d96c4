import { Refused } from "../errors.ts";
import type { Hub, Item } from "../hub.ts";
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

const OF_A_PAGE = 200;
/** `muster describe` shows at most this number of pages of a batch's hosts, because nobody reads a longer description. */
const MOST_PAGES = 10;

interface Hosts {
  readonly hosts: readonly Item[];
  readonly more: boolean;
}

/** Reads the hosts of a batch. A caller without the right to read operations gets the description of the batch without its hosts. */
export async function hostsOf(hub: Hub, batch: string): Promise<Hosts> {
  const hosts: Item[] = [];
  const query: Record<string, string> = { batch_id: batch, limit: String(OF_A_PAGE) };
  try {
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const { items, next_cursor: next } = await hub.one("listOperations", { query });
      hosts.push(...(items as Item[]));
      if (typeof next !== "string") return { hosts, more: false };
      query["cursor"] = next;
    }
  } catch (error) {
    if (error instanceof Refused && error.httpStatus === 403) return { hosts, more: false };
    throw error;
  }
  return { hosts, more: true };
}

/** A batch with its failures, each with what to do about it, and its hosts. */
export function describeBatch(batch: Item, { hosts, more }: Hosts): Described {
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
    {
      title: "More hosts",
      lines: more
        ? [
            `The batch has more hosts than these ${hosts.length}. All: muster get operations --batch ${batch["batch_id"]} --all`,
          ]
        : [],
    },
  ];
  const refusals = (batch["refusals"] ?? []) as Item[];
  if (refusals.length > 0) sections.push({ title: "Refused", columns: REFUSALS, rows: refusals });
  return { sections, answer: { batch, hosts, ...(more ? { more_hosts: true } : {}) } };
}
