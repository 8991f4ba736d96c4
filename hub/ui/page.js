// The operators' page, in the browser: everything is read from the public API every two seconds and goes in as text, never as markup. The
// token is kept for the tab only.
const FIRST_LOOK = 100;
const EVERY_MS = 2000;
const FAILED = ["failed_manual_intervention", "failed_retryable"];
const UNDER_WAY = ["running", "compensating", "pending"];
const ENDED = ["completed", "reconciled", "cancelled"];
const VERBS = {
  retry: "Run the failed stage again",
  resume: "Go on from the last safe stage",
  rerun: "Run from the top, adopting what is there",
  restart_clean: "Undo, forget, and begin again",
  adopt: "Accept what is observed and go on",
  cancel: "Stop, and undo where possible",
  mark_manual_intervention: "Freeze until a person resolves it",
};

const $ = (id) => document.getElementById(id);
const make = (name, content, className) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (content !== undefined && content !== null)
    made.append(...[content].flat().map((part) => (part instanceof Node ? part : String(part))));
  return made;
};
const kindOf = (status) => {
  if (["completed", "active", "reconciled", "deleted"].includes(status)) return "good";
  return status.startsWith("failed") || status === "quarantined" || status === "offline" ? "bad" : "busy";
};
const tag = (status) => make("span", status, `tag ${kindOf(status)}`);
const words = (name) => name.replaceAll("_", " ");
const time = (iso) => (iso ? new Date(iso).toLocaleString() : "never");
const table = (heads, rows) => {
  const body = rows.length === 0 ? [make("tr", make("td", "None", "empty"))] : rows;
  return make("table", [
    make(
      "thead",
      make(
        "tr",
        heads.map((head) => make("th", head)),
      ),
    ),
    make("tbody", body),
  ]);
};
const link = (href, text) => {
  const made = make("a", text);
  made.href = href;
  return made;
};
const section = (title, ...content) => make("section", [make("h2", title), ...content]);

let token = sessionStorage.getItem("muster-token") ?? "";
const ask = async (path, body) => {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(
    path,
    body === undefined
      ? { headers }
      : {
          method: "POST",
          headers: { ...headers, "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
          body: JSON.stringify(body),
        },
  );
  const read = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(read.detail ?? answer.statusText), { status: answer.status });
  return read;
};

/** An operation that stages move, whatever its kind: what the lists and the detail need to know of the kind. */
const KINDS = {
  onboardings: { title: "Onboarding", path: "/api/v1/admin/onboardings", id: "onboarding_id" },
  decommissions: { title: "Decommission", path: "/api/v1/admin/decommissions", id: "decommission_id" },
};

const progressOf = (one) => {
  const at = one.current_attempt > 1 ? ` (attempt ${one.current_attempt})` : "";
  return make("span", words(one.current_stage) + at);
};
const whyOf = (one) => {
  if (!one.error_code) return make("td", one.waiting_for, "why");
  const code = make("code", `${one.failure_class}/${one.error_code}`);
  return make("td", [code, " ", one.error_message, make("span", `Next: ${one.next_action}`, "next")], "why");
};
const operationRow = (kind) => (one) =>
  make("tr", [
    make("td", link(`#/${kind}/${one[KINDS[kind].id]}`, one.hostname)),
    make("td", tag(one.status)),
    make("td", progressOf(one)),
    whyOf(one),
    make("td", time(one.updated_at)),
  ]);
const operations = (kind, rows) =>
  table(["Host", "Status", "Stage", "What it waits for, or why it failed", "Last moved"], rows.map(operationRow(kind)));

const listOf = async (kind, statuses, limit) => {
  const pages = await Promise.all(statuses.map((status) => ask(`${KINDS[kind].path}?status=${status}&limit=${limit}`)));
  return pages.flatMap((page) => page.items);
};

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

const classesOf = (failed) => {
  const classes = Map.groupBy(failed, (one) => one.failure_class);
  return make(
    "p",
    [...classes].map(([name, rows]) => make("span", `${rows.length} x ${words(name)}`, "tag bad")),
    "counts",
  );
};

async function overview() {
  const [status, drift, batches, nodes, ...kinds] = await Promise.all([
    ask("/api/v1/admin/status"),
    driftSections(),
    ask(`${BATCHES}?limit=5`),
    ask("/api/v1/admin/nodes?limit=200"),
    ...Object.keys(KINDS).map(async (kind) => ({
      kind,
      failed: await listOf(kind, FAILED, FIRST_LOOK),
      underWay: await listOf(kind, UNDER_WAY, FIRST_LOOK),
      ended: await listOf(kind, ENDED, 20),
    })),
  ]);
  $("about").textContent = `hub ${status.version}, ${status.agents} agents connected here`;
  const newest = (a, b) => b.updated_at.localeCompare(a.updated_at);
  const work = kinds.flatMap(({ kind, failed, underWay, ended }) => [
    section(`${KINDS[kind].title}s that need a person`, classesOf(failed), operations(kind, failed.sort(newest))),
    section(`${KINDS[kind].title}s under way`, operations(kind, underWay.sort(newest))),
    section(`${KINDS[kind].title}s that ended last`, operations(kind, ended.sort(newest).slice(0, 20))),
  ]);
  return [
    ...work,
    ...drift,
    section("Newest batches", batchTable(batches.items)),
    section(
      "Nodes",
      table(["Host", "Status", "Schedulable", "SKU", "Address", "Agent", "Last contact"], nodes.items.map(nodeRow)),
    ),
  ];
}

const facts = (values) =>
  make(
    "dl",
    Object.entries(values).flatMap(([name, value]) => [
      make("dt", words(name)),
      make("dd", value !== null && typeof value === "object" ? JSON.stringify(value) : (value ?? "-")),
    ]),
  );
const history = (events) =>
  table(
    ["When", "Stage", "Attempt", "", "What happened"],
    events
      .toReversed()
      .map((event) =>
        make("tr", [
          make("td", time(event.occurred_at)),
          make("td", words(event.stage)),
          make("td", event.attempt),
          make("td", event.status),
          make("td", event.message, "why"),
        ]),
      ),
  );

/** Verbs that can do something in the status; the recommended one first. The hub decides: it refuses what its table refuses. */
const verbsOf = (one) => {
  if (ENDED.includes(one.status)) return [];
  if (!one.status.startsWith("failed")) return ["cancel", "mark_manual_intervention"];
  const first = one.next_verb ?? "retry";
  return [first, ...Object.keys(VERBS).filter((verb) => verb !== first)];
};
const actionButton = (path, title, verb, className, more = {}) => {
  const button = make("button", words(verb), className);
  button.type = "button";
  button.title = title;
  button.addEventListener("click", () =>
    askReason(`${path}/${(more.verb ?? verb).replaceAll("_", "-")}`, title, more.body),
  );
  return button;
};
const verbButton = (path, recommended) => (verb) =>
  actionButton(path, VERBS[verb], verb, verb === recommended ? "first" : "");
/** What can be done with a node by its status. */
const NODE_ACTIONS = {
  drain: { on: ["active", "offline", "quarantined"], title: "Take the node out of service: cordon, drain, retire" },
  activate: { on: ["retired"], title: "Put the node into service again" },
  release: {
    on: ["retired"],
    title: "Release the machine in MAAS and power it off; the node cannot be put into service again",
  },
  remove: { on: ["retired"], title: "Uninstall the agent, revoke its certificates and delete the node" },
};
const nodeActions = (one) =>
  Object.entries(NODE_ACTIONS)
    .filter(([, { on }]) => on.includes(one.status))
    .map(([verb, { title }]) => actionButton(`/api/v1/admin/nodes/${one.id}`, title, verb, ""));

function askReason(path, title, body = {}) {
  $("dialog-title").textContent = `${title}?`;
  $("reason").value = "";
  $("dialog").returnValue = "";
  $("dialog").onclose = async () => {
    const reason = $("reason").value.trim();
    if ($("dialog").returnValue !== "do" || reason === "") return;
    try {
      await ask(path, { ...body, reason });
      $("note").textContent = "";
    } catch (error) {
      $("note").textContent = error.message;
    }
    await loop();
  };
  $("dialog").showModal();
}

async function operation(kind, id) {
  const { title, path } = KINDS[kind];
  const { events, error_details: evidence, ...one } = await ask(`${path}/${id}`);
  const more =
    kind === "decommissions" && one.mode !== "release" && !ENDED.includes(one.status)
      ? [actionButton(`${path}/${id}`, "Go on without an agent that is gone for good", "force", "")]
      : [];
  const failed = one.error_code
    ? [
        section(
          "Why it failed",
          make("p", [make("code", `${one.failure_class}/${one.error_code}`), " ", one.error_message]),
          make("p", `Next: ${one.next_action}`, "next"),
          facts(evidence),
        ),
      ]
    : [];
  return [
    section(
      `${title} of ${one.hostname}`,
      make("p", [tag(one.status), " ", progressOf(one), one.waiting_for ? `: ${one.waiting_for}` : ""]),
    ),
    make("div", [...verbsOf(one).map(verbButton(`${path}/${id}`, one.next_verb)), ...more], "verbs"),
    ...failed,
    section("History", history(events)),
    section("Record", facts(one)),
  ];
}

const BATCHES = "/api/v1/admin/onboarding-batches";
const batchRow = (one) =>
  make("tr", [
    make("td", link(`#/batches/${one.batch_id}`, time(one.requested_at))),
    make("td", one.done ? tag("completed") : tag("running")),
    ...[one.total, one.succeeded, one.failed, one.cancelled].map((count) => make("td", count)),
    make("td", one.requested_by ?? ""),
  ]);
const batchTable = (rows) =>
  table(["Batch", "Status", "Hosts", "Succeeded", "Failed", "Cancelled", "Requested by"], rows.map(batchRow));

async function batch(id) {
  const [{ failures, ...one }, hosts] = await Promise.all([
    ask(`${BATCHES}/${id}`),
    ask(`/api/v1/admin/onboardings?batch_id=${id}&limit=200`),
  ]);
  const failureRow = (failure) =>
    make("tr", [
      make("td", make("code", `${failure.failure_class}/${failure.error_code}`)),
      make("td", failure.hosts.length),
      make("td", failure.next_verb ? words(failure.next_verb) : "-"),
      make("td", failure.next_action ?? "", "why"),
      make(
        "td",
        failure.hosts.map((host) => link(`#/onboardings/${host.onboarding_id}`, `${host.hostname} `)),
      ),
    ]);
  const buttons = [
    ...(one.failed > 0
      ? [actionButton(`${BATCHES}/${id}`, "Take up each host that failed, by its recommended verb", "recover", "first")]
      : []),
    ...(one.done ? [] : [actionButton(`${BATCHES}/${id}`, "Cancel what is under way", "cancel", "")]),
  ];
  return [
    section("Batch", batchTable([one]), make("div", buttons, "verbs")),
    section("What failed", table(["Failure", "Hosts", "Next verb", "Next", "Which"], failures.map(failureRow))),
    section(
      hosts.items.length < one.total ? `Its hosts: ${hosts.items.length} of ${one.total}` : "Its hosts",
      operations("onboardings", hosts.items),
    ),
    section("Record", facts(one)),
  ];
}

async function node(id) {
  const { events, conditions, inventory, maas, ...one } = await ask(`/api/v1/admin/nodes/${id}`);
  const conditionRow = (condition) =>
    make("tr", [
      make("td", condition.type),
      make("td", condition.status),
      make("td", `${condition.reason} ${condition.message}`, "why"),
      make("td", time(condition.observed_at)),
    ]);
  const eventRow = (event) =>
    make("tr", [
      make("td", time(event.occurred_at)),
      make("td", `${event.from_status ?? ""} → ${event.to_status ?? ""}`),
      make("td", event.owner),
      make("td", event.message, "why"),
    ]);
  return [
    section(`Node ${one.hostname}`, make("p", tag(one.status)), make("div", nodeActions(one), "verbs"), facts(one)),
    section("Conditions", table(["Condition", "Status", "Why", "Observed"], conditions.map(conditionRow))),
    section("As MAAS sees it", facts(maas ?? { machine: "not bound to one" })),
    section("Inventory", facts(inventory ?? { inventory: "not reported yet" })),
    section("History", table(["When", "Move", "By", "Why"], events.map(eventRow))),
  ];
}

const viewOf = (hash) => {
  const [, kind, id] = hash.split("/");
  if (id !== undefined && Object.hasOwn(KINDS, kind)) return operation(kind, id);
  if (kind === "batches" && id !== undefined) return batch(id);
  return kind === "nodes" && id !== undefined ? node(id) : overview();
};

let timer;
async function loop() {
  clearTimeout(timer);
  const hash = location.hash;
  try {
    const view = await viewOf(hash);
    if (hash !== location.hash) return;
    $("main").replaceChildren(...view);
    $("main").hidden = false;
    $("login").hidden = true;
    $("leave").hidden = false;
    if ($("note").dataset.from === "loop") $("note").textContent = "";
  } catch (error) {
    $("note").textContent = error.message;
    $("note").dataset.from = "loop";
    if (error.status === 401) return leave();
  }
  timer = setTimeout(loop, EVERY_MS);
}

function leave() {
  clearTimeout(timer);
  token = "";
  sessionStorage.removeItem("muster-token");
  $("main").hidden = true;
  $("main").replaceChildren();
  $("leave").hidden = true;
  $("login").hidden = false;
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  sessionStorage.setItem("muster-token", token);
  $("note").textContent = "";
  void loop();
});
$("leave").addEventListener("click", leave);
addEventListener("hashchange", loop);
if (token !== "") void loop();
