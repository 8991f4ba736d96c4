// The operators' page, in the browser: everything is read from the public API every two seconds and goes in as text, never as markup. The
// token is kept for the tab only.
const FIRST_LOOK = 100;
const EVERY_MS = 2000;
const DEADLINE_MS = 30_000;
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

let token = sessionStorage.getItem("muster-token") ?? "";
const fetchFrom = async (path, request) => {
  try {
    return await fetch(path, { ...request, signal: AbortSignal.timeout(DEADLINE_MS) });
  } catch {
    throw new Error("The hub does not answer.");
  }
};
const ask = async (path, body) => {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetchFrom(
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
  if (answer.status === 401)
    throw Object.assign(
      new Error("The hub refuses this token. The first one is in its state folder, in the file admin-token."),
      { status: 401 },
    );
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
  const mode = one.mode ? `${one.mode}: ` : "";
  return make("span", mode + words(one.current_stage) + at);
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

const classesOf = (failed) => {
  const classes = Map.groupBy(failed, (one) => one.failure_class);
  return make(
    "p",
    [...classes].map(([name, rows]) => make("span", `${rows.length} x ${words(name)}`, "tag bad")),
    "counts",
  );
};

async function overview() {
  const [status, reconciliation, batches, nodes, ...kinds] = await Promise.all([
    ask("/api/v1/admin/status"),
    reconciliationSections(),
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
  const each = (title, rows, ...more) =>
    kinds.map((one) =>
      section(
        `${KINDS[one.kind].title}s ${title}`,
        ...more.map((part) => part(one)),
        operations(one.kind, rows(one).sort(newest)),
      ),
    );
  const { breakers, drifted, sites } = reconciliation;
  return [
    ...breakers,
    ...each(
      "that need a person",
      (one) => one.failed,
      (one) => classesOf(one.failed),
    ),
    drifted,
    ...each("under way", (one) => one.underWay),
    sites,
    section(
      nodes.next_cursor === null ? "Nodes" : `Nodes: the first ${nodes.items.length}`,
      table(["Host", "Status", "Schedulable", "SKU", "Address", "Agent", "Last contact"], nodes.items.map(nodeRow)),
    ),
    section("Newest batches", batchTable(batches.items)),
    ...each("that ended last", (one) => one.ended.sort(newest).slice(0, 20)),
  ];
}

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
const verbButton = (path, recommended, host) => (verb) =>
  actionButton(path, VERBS[verb], verb, verb === recommended ? "first" : "", { host });
function askReason({ title, dataset: { path, body, host } }) {
  $("dialog-title").textContent = host ? `${host}: ${title}?` : `${title}?`;
  $("reason").value = "";
  $("dialog").returnValue = "";
  $("dialog").onclose = async () => {
    const reason = $("reason").value.trim();
    if ($("dialog").returnValue !== "do" || reason === "") return;
    try {
      await ask(path, { ...JSON.parse(body), reason });
      $("note").textContent = "";
    } catch (error) {
      $("note").textContent = host ? `${host}: ${error.message}` : error.message;
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
      ? [
          actionButton(`${path}/${id}`, "Go on without an agent that is gone for good", "force", "", {
            host: one.hostname,
          }),
        ]
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
    make("div", [...verbsOf(one).map(verbButton(`${path}/${id}`, one.next_verb, one.hostname)), ...more], "verbs"),
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

const viewOf = (hash) => {
  const [, kind, id] = hash.split("/");
  if (id !== undefined && Object.hasOwn(KINDS, kind)) return operation(kind, id);
  if (kind === "batches" && id !== undefined) return batch(id);
  return kind === "nodes" && id !== undefined ? node(id) : overview();
};

let timer;
/** Of the newest look: one that was overtaken, or whose token was forgotten meanwhile, shows nothing. */
let look = 0;
/** What the page shows, and since when. */
let shownHash = null;
let shownAt = null;
async function loop() {
  clearTimeout(timer);
  look += 1;
  const mine = look;
  const { hash } = location;
  try {
    const view = make("main", await viewOf(hash));
    if (mine !== look) return;
    show(hash, view);
    $("stale").textContent = "";
  } catch (error) {
    if (mine !== look) return;
    if (shownHash !== hash) clear();
    const since = shownAt === null ? "" : ` What is shown is of ${shownAt.toLocaleTimeString()}.`;
    $("stale").textContent = error.status === 401 ? error.message : error.message + since;
    if (error.status === 401) return leave();
  }
  timer = setTimeout(loop, EVERY_MS);
}

function show(hash, view) {
  if (shownHash === hash) patchChildren($("main"), view);
  else {
    $("main").replaceChildren(...view.childNodes);
    $("note").textContent = "";
    scrollTo(0, 0);
  }
  const title = hash.length > 2 ? $("main").querySelector("h2")?.textContent : undefined;
  document.title = title ? `${title} - Muster` : "Muster";
  shownHash = hash;
  shownAt = new Date();
  $("main").hidden = false;
  $("login").hidden = true;
  $("leave").hidden = false;
}

/** Nothing of an earlier view stays under another address. */
function clear() {
  $("main").replaceChildren();
  shownHash = null;
  shownAt = null;
}

function leave() {
  clearTimeout(timer);
  look += 1;
  token = "";
  sessionStorage.removeItem("muster-token");
  clear();
  $("about").textContent = "";
  $("note").textContent = "";
  $("main").hidden = true;
  $("leave").hidden = true;
  $("login").hidden = false;
  $("token").focus();
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  sessionStorage.setItem("muster-token", token);
  $("stale").textContent = "";
  void loop();
});
$("leave").addEventListener("click", () => {
  leave();
  $("stale").textContent = "";
});
$("main").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-path]");
  if (button !== null) askReason(button);
});
addEventListener("hashchange", loop);
if (token === "") $("token").focus();
else void loop();
