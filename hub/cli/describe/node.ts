import { Refused } from "../errors.ts";
import type { Hub, Item } from "../hub.ts";
import { age, type Column, col } from "../nouns/noun.ts";
import { adviceOf, partOf } from "./parts.ts";
import { type Described, factsOf, type Section } from "./section.ts";

const IDENTITY = [
  ["hostname", "hostname"],
  ["id", "id"],
  ["status", "status"],
  ["schedulable", "schedulable"],
  ["not schedulable because", "unschedulable_reasons"],
  ["cordon", "cordon_reason"],
  ["cordoned by", "cordon_owner"],
  ["site", "site"],
  ["room", "location.room"],
  ["rack", "location.rack"],
  ["unit", "location.unit"],
  ["SKU", "sku_id"],
  ["GPUs", "gpus_total"],
  ["address", "host"],
  ["mode", "onboarding_mode"],
  ["generation", "generation"],
  ["agent", "agent_version"],
  ["last contact", "last_agent_contact_at"],
  ["baseline", "baseline.state"],
  ["created", "created_at"],
] as const;
const MACHINE = [
  ["system id", "maas_system_id"],
  ["status", "maas.status"],
  ["power", "maas.power_state"],
  ["addresses", "maas.ip_addresses"],
  ["serial number", "maas.hardware.serial"],
  ["board serial", "maas.hardware.board_serial"],
  ["chassis serial", "maas.hardware.chassis_serial"],
  ["firmware", "maas.hardware.firmware_version"],
  ["zone", "maas.hardware.zone"],
  ["pool", "maas.hardware.pool"],
  ["last sync", "maas.last_sync"],
  ["observed", "maas.observed_at"],
] as const;
const CONDITIONS = [
  col("CONDITION", "type"),
  col("STATUS", "status"),
  col("CLASS", "class"),
  col("REASON", "reason"),
  age("SINCE", "observed_at"),
  col("MESSAGE", "message"),
];
const OVERRIDES = [col("SOURCE", "source"), col("REASON", "reason"), col("BY", "set_by"), age("SINCE", "since")];
const OPERATIONS = [
  col("KIND", "kind"),
  col("STATUS", "status"),
  col("STAGE", "current_stage"),
  age("REQUESTED", "requested_at"),
  col("WAITING FOR", "waiting_for"),
  col("ID", "operation_id"),
];
const ALLOCATIONS = [
  col("TENANT", "tenant"),
  col("LOGIN", "login_user"),
  col("STATUS", "status"),
  age("SINCE", "created_at"),
  col("ENDS", "ends_at"),
  col("ID", "id"),
];
const DRIFT = [
  col("RULE", "drift_details.rule"),
  col("SEVERITY", "drift_details.severity"),
  age("SINCE", "drift_details.detected_at"),
  col("MESSAGE", "drift_details.message"),
];
const TASKS = [col("TYPE", "type"), col("STATE", "state"), age("AGE", "created_at"), col("ERROR", "error_message")];
const EVENTS = [
  age("TIME", "occurred_at"),
  col("TYPE", "type"),
  col("FROM", "from_status"),
  col("TO", "to_status"),
  col("MESSAGE", "message"),
];
const FEW = "10";

/** Everything about a node that the hub knows, from six answers of its API. */
export async function describeNode(hub: Hub, node: Item): Promise<Described> {
  const id = String(node["id"]);
  const query = { node_id: id, limit: FEW };
  const [site, operations, allocations, drift, tasks] = await Promise.all([
    siteName(hub, node["site_id"]),
    partOf(hub, "listOperations", { query }),
    partOf(hub, "listAllocations", { query }),
    partOf(hub, "listDrift", { query: { ...query, include_acknowledged: "true" } }),
    partOf(hub, "listNodeTasks", { words: { id }, query: { limit: FEW } }),
  ]);
  const table = (title: string, columns: readonly Column[], rows: readonly Item[] | null): Section[] =>
    rows === null ? [] : [{ title, columns, rows }];
  const events = (node["events"] as Item[]).slice(0, Number(FEW));
  const sections: Section[] = [
    { title: "Node", facts: factsOf({ ...node, site }, IDENTITY) },
    { title: "What to do", lines: advice(node, operations ?? [], drift ?? []) },
    { title: "Machine in MAAS", facts: factsOf(node, MACHINE) },
    ...table("Conditions", CONDITIONS, node["conditions"] as Item[]),
    ...table("Health overrides", OVERRIDES, node["health_overrides"] as Item[]),
    ...table("Drift", DRIFT, drift),
    ...table("Allocations", ALLOCATIONS, allocations),
    ...table("Operations", OPERATIONS, operations),
    ...table("Tasks of the agent", TASKS, tasks),
    ...table("Changes", EVENTS, events),
  ];
  return { sections, answer: { node, operations, allocations, drift, tasks } };
}

function advice(node: Item, operations: readonly Item[], drift: readonly Item[]): string[] {
  const adoption = node["adoption"] as Item | null;
  const next = adoption?.["next_action"];
  const differs = drift.map((one) => `drift: ${String((one["drift_details"] as Item | null)?.["message"])}`);
  return [...(typeof next === "string" ? [`adoption: ${next}`] : []), ...adviceOf(operations), ...differs];
}

/** The name of a site; a caller without the right to read sites sees its id. */
async function siteName(hub: Hub, siteId: unknown): Promise<unknown> {
  if (typeof siteId !== "string") return null;
  try {
    return (await hub.one("getMaasSite", { words: { id: siteId } }))["name"];
  } catch (error) {
    if (error instanceof Refused && error.httpStatus === 403) return siteId;
    throw error;
  }
}
