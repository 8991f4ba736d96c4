// Nodes that do not agree with their machines in MAAS, and the breakers that hold back what would be done about too many of them. Part of page.js.
const DRIFT = "/api/v1/admin/reconciliation";
const RESOLUTIONS = {
  acknowledge: "It is known, and nothing is to be done about it while it is the same",
  return_to_service: "The cause is gone: make the node active again",
};

const driftRow = (one) => {
  const { rule, severity, message, held_back: heldBack, detected_at: since } = one.drift_details;
  const resolve = (action) =>
    actionButton(`${DRIFT}/drift/${one.node_id}`, RESOLUTIONS[action], action, "", {
      verb: "resolve",
      body: { action },
    });
  const actions = one.node_status === "quarantined" ? Object.keys(RESOLUTIONS) : ["acknowledge"];
  return make("tr", [
    make("td", link(`#/nodes/${one.node_id}`, one.hostname)),
    make("td", tag(one.node_status)),
    make("td", make("span", severity, `tag ${["critical", "high"].includes(severity) ? "bad" : "busy"}`)),
    make("td", [make("code", rule), " ", message, ...(heldBack ? [make("span", heldBack, "next")] : [])], "why"),
    make("td", time(since)),
    make("td", make("div", actions.map(resolve), "verbs")),
  ]);
};
const breakerRow = (names) => (one) =>
  make("tr", [
    make("td", names.get(one.site_id) ?? one.site_id),
    make("td", one.kind),
    make("td", `${one.would_move} of ${one.in_service} nodes in service at once, ${one.move_limit} allowed`, "why"),
    make("td", time(one.tripped_at)),
    make(
      "td",
      make(
        "div",
        [false, true].map((accept) =>
          actionButton(
            `${DRIFT}/breakers/${one.site_id}`,
            accept
              ? "What is seen is true: let everything through for a quarter of an hour"
              : "Let nodes be moved again",
            accept ? "accept_drift" : "reset",
            "",
            { verb: "reset", body: { kind: one.kind, accept_drift: accept } },
          ),
        ),
        "verbs",
      ),
    ),
  ]);

/** Sections of the overview; none of a breaker while none is open. */
// biome-ignore lint/correctness/noUnusedVariables: page.js calls it; the two are one script
async function driftSections() {
  const [status, drift] = await Promise.all([ask(`${DRIFT}/status`), ask(`${DRIFT}/drift?limit=${FIRST_LOOK}`)]);
  const names = new Map(status.sites.map((site) => [site.site_id, site.name]));
  const open = status.sites.flatMap((site) => site.breakers).filter((one) => one.state === "open");
  const breakers = table(["Site", "Moves", "What it holds back", "Since", ""], open.map(breakerRow(names)));
  const counts = make(
    "p",
    `${status.ok} agree, ${status.drifted} do not, ${status.acknowledged} acknowledged, ${status.unreconciled} not compared yet`,
  );
  const drifted = table(
    ["Host", "Node", "Severity", "What does not agree, and what to do", "Since", ""],
    drift.items.map(driftRow),
  );
  return [
    ...(open.length === 0 ? [] : [section("Breakers that are open", breakers)]),
    section("Nodes and their machines in MAAS", counts, ...(drift.items.length === 0 ? [] : [drifted])),
  ];
}
