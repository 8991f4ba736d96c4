// The part of the operators' page for nodes: the row in the overview, the actions, and the details.
// biome-ignore-all lint/correctness/noUnusedVariables: page.js uses them; the scripts are one
const NODES = "/api/v1/admin/nodes";
/** For each node, the number of status changes that the API returns, and the number of operations that the page shows. */
const NEWEST_MOVES = 50;
const NEWEST_OPERATIONS = 10;
const nodeRow = (one) =>
  make("tr", [
    make("td", link(`#/nodes/${one.id}`, one.hostname)),
    make("td", tag(one.status)),
    make("td", one.schedulable ? "yes" : one.unschedulable_reasons.join("; "), "why"),
    make("td", one.sku_id),
    make("td", one.host ?? ""),
    make("td", one.agent_version ?? ""),
    make("td", time(one.last_agent_contact_at)),
  ]);
const nodeTable = (rows) =>
  table(["Host", "Status", "Schedulable", "SKU", "Address", "Agent", "Last contact"], rows.map(nodeRow));

/** A plan says what a task would do, so the page never shows a plan as work that was done. */
const taskRow = (task) =>
  make("tr", [
    make("td", time(task.created_at)),
    make("td", task.plan ? [task.type, " ", tag("plan")] : task.type),
    make("td", tag(task.state)),
    make("td", task.error_message ?? (task.result?.steps ?? []).map(({ message }) => message).join(" "), "why"),
  ]);

/** The actions of an operator on a node, each with the statuses of nodes for which the page offers the action. */
const NODE_ACTIONS = {
  drain: { on: ["active", "offline", "quarantined"], title: "Take the node out of service: cordon, drain, retire" },
  cordon: {
    on: ["active", "offline", "quarantined", "enrolling", "retired"],
    when: (one) => one.cordon_reason === null,
    title: "Keep new work off the node, and leave what runs on it alone",
  },
  uncordon: {
    on: ["active", "offline", "quarantined", "enrolling", "retired"],
    when: (one) => one.cordon_owner?.startsWith("operator:"),
    title: "Allow new work on the node again",
  },
  quarantine: { on: ["active", "offline"], title: "Take the node out of service until a person puts it back" },
  lift_quarantine: { on: ["quarantined"], title: "Vouch for the node, and put it into service again" },
  "re-enroll": {
    on: ["active", "offline", "quarantined"],
    when: (one) => one.blocked || one.status === "offline",
    title:
      "Revoke the node's identity, and show the command with which its host enrolls again; any host that runs it gets the identity, so shut the copy down first",
    // The answer to `re-enroll` contains a token. The page sends no idempotency key with `re-enroll`, so the hub does not store the answer with the
    // token.
    secret: true,
  },
  storage_cleanup: {
    on: ["active", "offline", "quarantined"],
    when: (one) => one.allocation === null,
    title: "End all sessions, clean the storage of the node, look for residue, and return the node to service",
  },
  activate: { on: ["retired"], title: "Put the node into service again" },
  release: {
    on: ["retired", "deleted"],
    when: (one) => one.onboarding_mode !== "manual",
    title: "Release the machine in MAAS and power it off; the node cannot be put into service again",
  },
  full_decommission: {
    on: ["active", "offline", "quarantined", "draining", "retired"],
    when: (one) => one.onboarding_mode !== "manual" && one.allocation === null,
    title:
      "Take the node and its host out of the fleet: drain, release the machine with an erase of its disks, power it off, and remove the node",
    verb: "decommission",
    body: { mode: "full_decommission" },
  },
  remove: {
    on: ["retired", "bootstrap_issued"],
    title:
      "Uninstall the agent, revoke its certificates and delete the node; a machine that was not released stays deployed in MAAS, and may be released later",
  },
};
const nodeActions = (one) =>
  Object.entries(NODE_ACTIONS)
    .filter(([, { on, when = () => true }]) => on.includes(one.status) && when(one))
    .map(([name, { title, secret, verb, body }]) =>
      actionButton(`${NODES}/${one.id}`, title, name, one.hostname, { secret, verb, body }),
    );
/**
 * True if two hosts used the node's identity. After two hosts used a node's identity, the hub accepts no agent of the node until the node enrolls
 * again.
 */
const isBlocked = ({ type, status }) => type === "agent.identity" && status === "False";

/** Shows the health overrides of a node, each with the button that removes it. The page of a node without overrides has no section for overrides. */
function overrideSection(id, overrides) {
  const title = "Allow new work on the node although the cause of the override stands";
  const lifts = (needed) =>
    needed === null ? "a person" : `an erase with evidence (${needed} or stronger), or a person`;
  const row = ({ source, target, reason, set_by: by, needed_erase: needed, since }) =>
    make("tr", [
      make("td", source),
      make("td", target ?? ""),
      make("td", reason, "why"),
      make("td", by),
      make("td", lifts(needed)),
      make("td", time(since)),
      make("td", actionButton(`${NODES}/${id}`, title, "remove_health_override", source, { body: { source } })),
    ]);
  if (overrides.length === 0) return [];
  return [
    section("Health overrides", table(["Source", "Target", "Why", "By", "Lifted by", "Since", ""], overrides.map(row))),
  ];
}

/** Shows the whole history of a node, oldest entry first, one page at a time. */
async function lifecycle(id, asked) {
  const query = new URLSearchParams(asked);
  query.set("limit", FIRST_LOOK);
  const { items, next_cursor: next } = await ask(`${NODES}/${id}/lifecycle?${query}`);
  const row = (one) =>
    make("tr", [
      make("td", time(one.at)),
      make("td", one.kind),
      make("td", words(one.what)),
      make("td", one.status === null ? "" : words(one.status)),
      make("td", one.by ?? ""),
      make("td", one.message ?? "", "why"),
    ]);
  const more = next === null ? [] : [link(`#/lifecycle/${id}?${new URLSearchParams({ cursor: next })}`, "The next")];
  return [
    section(
      "Lifecycle",
      make("p", link(`#/nodes/${id}`, "The node")),
      table(["When", "Kind", "What", "Status", "By", "Why"], items.map(row)),
      make("p", more),
      make("p", `As a file: muster export-node-lifecycle-csv ${id}`),
    ),
  ];
}

async function node(id) {
  const [
    { events, conditions, health_overrides: overrides, inventory, maas, allocation, ...one },
    used,
    records,
    tasks,
    ...held
  ] = await Promise.all([
    ask(`${NODES}/${id}`),
    ask(`${ALLOCATIONS}?node_id=${id}&limit=${NEWEST_OPERATIONS}`),
    ask(`${RECORDS}?node_id=${id}&limit=${NEWEST_OPERATIONS}`),
    ask(`${NODES}/${id}/tasks?limit=${NEWEST_OPERATIONS}`),
    ...Object.entries(KINDS).map(async ([kind, { path }]) =>
      operations(kind, (await ask(`${path}?node_id=${id}&limit=${NEWEST_OPERATIONS}`)).items),
    ),
  ]);
  const drift = await driftOfNode(one);
  const conditionRow = (condition) =>
    make("tr", [
      make("td", condition.type),
      make("td", condition.status),
      make("td", [make("code", condition.reason), " ", condition.message], "why"),
      make("td", time(condition.observed_at)),
    ]);
  const eventRow = (event) =>
    make("tr", [
      make("td", time(event.occurred_at)),
      make("td", event.to_status === null ? words(event.type) : `${event.from_status ?? ""} → ${event.to_status}`),
      make("td", event.owner),
      make("td", event.message, "why"),
    ]);
  return [
    section(
      `Node ${one.hostname}`,
      make("p", tag(one.status)),
      verbs(nodeActions({ ...one, allocation, blocked: conditions.some(isBlocked) })),
      make("p", link(`#/lifecycle/${id}`, "Its whole lifecycle")),
      facts(one),
    ),
    ...drift,
    ...overrideSection(id, overrides),
    section("Conditions", table(["Condition", "Status", "Why", "Observed"], conditions.map(conditionRow))),
    section("As MAAS sees it", facts(maas ?? { machine: "not bound to one" })),
    section("Inventory", facts(inventory ?? { inventory: "not reported yet" })),
    section("Allocations of it", allocationTable(used.items), ...moreOf("allocations", [used], { node_id: id })),
    section("Sanitization records of it", recordTable(records.items), ...moreOf("records", [records], { node_id: id })),
    ...Object.values(KINDS).map(({ title }, index) => section(`${title}s of it`, held[index])),
    section("Newest tasks of its agent", table(["When", "Task", "State", "Result"], tasks.items.map(taskRow))),
    section(
      events.length < NEWEST_MOVES ? "History" : `History: the newest ${NEWEST_MOVES}`,
      table(["When", "What", "By", "Why"], events.map(eventRow)),
    ),
  ];
}
