// The part of the operators' page for drift: nodes that differ from their machines in MAAS, breakers, and how the hub watches each site.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const DRIFT = "/api/v1/admin/reconciliation";
/** The most sites whose names the page shows; it shows the ids of the others. */
const MOST_SITES = 100;
async function siteNames() {
  const { items } = await ask(`/api/v1/admin/maas-sites?limit=${MOST_SITES}`);
  return new Map(items.map(({ id, name }) => [id, name]));
}
const RESOLUTIONS = {
  acknowledge: "The drift is known, and nothing is to be done while it stays the same",
  return_to_service: "The cause is gone: make the node active again",
};

const resolveButton = (id, host, action) =>
  actionButton(`${DRIFT}/drift/${id}`, RESOLUTIONS[action], action, host, { verb: "resolve", body: { action } });
/** The hub refuses to return a node to service unless its machine is Deployed, so the page offers the return only for a Deployed machine. */
const returnButton = (one, maas) =>
  one.status === "quarantined" && maas?.status === "Deployed"
    ? [resolveButton(one.id, one.hostname, "return_to_service")]
    : [];
const driftWhy = ({ rule, message, held_back: heldBack }) => [
  make("code", rule),
  " ",
  message,
  ...(heldBack ? [make("span", heldBack, "next")] : []),
];
const severityTag = (severity) =>
  make("span", severity, `tag ${["critical", "high"].includes(severity) ? "bad" : "busy"}`);

const driftRow = (one) => {
  const { severity, detected_at: since, maas_status: maasStatus } = one.drift_details;
  const node = { id: one.node_id, hostname: one.hostname, status: one.node_status };
  const actions = [
    resolveButton(one.node_id, one.hostname, "acknowledge"),
    ...returnButton(node, { status: maasStatus }),
  ];
  return make("tr", [
    make("td", link(`#/nodes/${one.node_id}`, one.hostname)),
    make("td", tag(one.node_status)),
    make("td", severityTag(severity)),
    make("td", driftWhy(one.drift_details), "why"),
    make("td", time(since)),
    make("td", verbs(actions)),
  ]);
};
const driftTable = (rows) =>
  table(["Host", "Node", "Severity", "What does not agree, and what to do", "Since", "Actions"], rows.map(driftRow));
const resetButton = (one, site, accept) =>
  actionButton(
    `${DRIFT}/breakers/${one.site_id}`,
    accept
      ? "The observations are right: let every move through for a quarter of an hour"
      : "Let nodes change status again, within the usual limit",
    accept ? "accept_drift" : "reset",
    `${site}, ${one.kind}`,
    { verb: "reset", body: { kind: one.kind, accept_drift: accept } },
  );
const breakerRow = (names) => (one) => {
  const row = make("tr", [
    make("td", names.get(one.site_id) ?? one.site_id),
    make("td", one.kind),
    make(
      "td",
      `${one.moved + one.would_move} nodes within ten minutes: ${one.moved} have changed status, ${one.would_move} wait; of ${one.in_service} in service, ${one.move_limit} may`,
      "why",
    ),
    make("td", time(one.tripped_at)),
    make("td", verbs([false, true].map((accept) => resetButton(one, names.get(one.site_id) ?? one.site_id, accept)))),
  ]);
  row.dataset.key = `${one.site_id} ${one.kind}`;
  return row;
};
const pollsFailed = ({ consecutive_failures: count }) =>
  count === 1 ? " in the last poll" : ` in the last ${count} polls`;
const siteRow = (one) => {
  const failing = one.consecutive_failures > 0;
  const trouble = [
    ...(failing
      ? [tag("cannot be polled", "bad"), " ", make("code", one.last_error_code ?? "unknown"), pollsFailed(one)]
      : []),
    ...(one.unreadable_machines > 0 ? [` ${one.unreadable_machines} machines could not be read`] : []),
  ];
  return make("tr", [
    make("td", one.name),
    make("td", tag(one.status, one.status === "disabled" ? "bad" : failing ? "over" : "good")),
    make("td", trouble.length === 0 ? "none" : trouble, "why"),
    ...[one.ok, one.drifted, one.acknowledged, one.unreconciled].map((count) => make("td", count)),
    make("td", time(one.last_look_at)),
    make("td", time(one.last_sweep_at)),
  ]);
};
const SITE_HEADS = [
  "Site",
  "Status",
  "Trouble with MAAS",
  "Agree",
  "Drifted",
  "Acknowledged",
  "Not compared",
  "Last poll",
  "Last sweep",
];

/** Returns the sections about drift for the overview of the operators' page. The overview has a table of breakers only if a breaker is open. */
async function reconciliationSections() {
  const [status, drift] = await Promise.all([ask(`${DRIFT}/status`), ask(`${DRIFT}/drift?limit=${FIRST_LOOK}`)]);
  const names = new Map(status.sites.map((site) => [site.site_id, site.name]));
  const open = status.sites.flatMap((site) => site.breakers).filter((one) => one.state === "open");
  const breakers = table(["Site", "Kind", "What it holds back", "Since", "Actions"], open.map(breakerRow(names)));
  const counts = make(
    "p",
    `${status.ok} agree, ${status.drifted} do not, ${status.acknowledged} acknowledged, ${status.unreconciled} not compared yet`,
  );
  return {
    breakers: open.length === 0 ? [] : [section("Breakers that are open", breakers)],
    drifted: section(
      "Nodes and their machines in MAAS",
      counts,
      ...(drift.items.length === 0 ? [] : [driftTable(drift.items)]),
      ...moreOf("drift", [drift]),
    ),
    sites: section("Sites", table(SITE_HEADS, status.sites.map(siteRow))),
  };
}

/** Shows the drift of one node, whether or not an operator has acknowledged the drift. */
async function driftOfNode({ id, hostname }) {
  const {
    items: [drift],
  } = await ask(`${DRIFT}/drift?node_id=${id}&include_acknowledged=true`);
  if (drift === undefined) return [];
  const { acknowledged, drift_details: details } = drift;
  const known =
    acknowledged && make("p", `Acknowledged by ${acknowledged.by}, ${time(acknowledged.at)}: ${acknowledged.reason}`);
  return [
    section(
      "Does not agree with its machine in MAAS",
      make("p", [severityTag(details.severity), " ", ...driftWhy(details)]),
      known ?? verbs(resolveButton(id, hostname, "acknowledge")),
    ),
  ];
}
