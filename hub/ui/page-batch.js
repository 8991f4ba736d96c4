// The part of the operators' page for batches of onboardings and of decommissions.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
/** The kinds of batches by their name in the page's address, each with its path in the API and the kind of its operations. */
const BATCHES = {
  batches: { title: "Batches of onboardings", path: "/api/v1/admin/onboarding-batches", kind: "onboardings" },
  "decommission-batches": {
    title: "Batches of decommissions",
    path: "/api/v1/admin/decommission-batches",
    kind: "decommissions",
  },
};
/** The page shows a finished batch as completed only if none of the batch's hosts waits for a person. */
const batchTag = ({ done, failed, paused }) => {
  if (paused !== null) return tag("paused", "bad");
  if (!done) return tag("running");
  return failed === 0 ? tag("completed") : tag("needs a person", "bad");
};
const batchLink = (one, text) =>
  link(`#/${one.kind === "onboarding" ? "batches" : "decommission-batches"}/${one.batch_id}`, text);
const batchRow = (one) =>
  make("tr", [
    make("td", batchLink(one, time(one.requested_at))),
    make("td", words(one.mode ?? one.kind)),
    make("td", batchTag(one)),
    ...[one.total, one.succeeded, one.failed, one.cancelled, one.refused].map((count) => make("td", count)),
    make("td", one.requested_by ?? ""),
  ]);
const batchTable = (rows) =>
  table(
    ["Batch", "Operation", "Status", "Hosts", "Succeeded", "Failed", "Cancelled", "Refused", "Requested by"],
    rows.map(batchRow),
  );

const NEWEST_BATCHES = 5;
/** Shows the newest batches of all kinds, with links to the lists of all batches. */
async function newestBatches() {
  const pages = await Promise.all(Object.values(BATCHES).map(({ path }) => ask(`${path}?limit=${NEWEST_BATCHES}`)));
  const newest = pages.flatMap((page) => page.items).sort((a, b) => b.requested_at.localeCompare(a.requested_at));
  const lists = Object.entries(BATCHES).flatMap(([name, { title }]) => [listLink(name, {}, title), " "]);
  return section("Newest batches", batchTable(newest.slice(0, NEWEST_BATCHES)), make("p", lists));
}

/** Returns the buttons for the verbs of a batch that can have an effect now. */
function batchButtons(path, { failed, paused, counts, done }) {
  const button = (title, verb, what, more) => actionButton(path, title, verb, what, more);
  const count = failed === 1 ? "1 host" : `${failed} hosts`;
  return [
    ...(failed > 0
      ? [
          button("Recover each failed host with its recommended verb", "recover", `${count} of this batch`, {
            first: true,
          }),
        ]
      : []),
    ...(paused === null ? [] : [button("Begin the waiting hosts again", "resume", "this batch")]),
    ...(paused === null && counts.pending > 0
      ? [button("Begin no further host until somebody resumes the batch", "pause", "this batch")]
      : []),
    ...(done
      ? []
      : [button("Stop what is under way, and undo where possible", "cancel", "what is under way of this batch")]),
  ];
}
/** Says why a paused batch begins no further host, and what the operator can do next. */
const pauseOf = ({ paused }) => {
  if (paused === null) return [];
  const by = paused.by === null ? "" : ` by ${paused.by}`;
  return [
    make("p", `Paused since ${time(paused.since)}${by}: ${paused.reason}`, "why"),
    make("p", `Next: ${paused.next_action}`, "why"),
  ];
};

async function batch(name, id) {
  const { path: batches, kind } = BATCHES[name];
  const [{ failures, refusals, ...one }, hosts] = await Promise.all([
    ask(`${batches}/${id}`),
    ask(`${KINDS[kind].path}?batch_id=${id}&limit=${FIRST_LOOK}`),
  ]);
  const failureRow = (failure) =>
    make("tr", [
      make("td", make("code", `${failure.failure_class}/${failure.error_code}`)),
      make("td", failure.hosts.length),
      make("td", failure.next_verb ? words(failure.next_verb) : "-"),
      make("td", failure.next_action ?? "", "why"),
      make(
        "td",
        failure.hosts.map((host) =>
          make("p", [link(`#/${kind}/${host[KINDS[kind].id]}`, host.hostname), `: ${host.message ?? "no reason"}`]),
        ),
        "why",
      ),
    ]);
  const refusalRow = (refusal) =>
    make("tr", [
      make("td", link(`#/nodes/${refusal.node_id}`, refusal.hostname ?? refusal.node_id)),
      make("td", make("code", refusal.error_code)),
      make("td", refusal.message, "why"),
    ]);
  const title = `Batch of ${time(one.requested_at)}`;
  return [
    section(title, batchTable([one]), ...pauseOf(one), verbs(batchButtons(`${batches}/${id}`, one))),
    section(
      "What failed",
      table(["Failure", "Hosts", "Next verb", "Next", "Which, and why"], failures.map(failureRow)),
    ),
    ...(refusals.length === 0
      ? []
      : [section("Nodes that were refused", table(["Node", "Code", "Why"], refusals.map(refusalRow)))]),
    section("Its hosts", operations(kind, hosts.items), ...moreOf(kind, [hosts], { batch_id: id })),
    section("Record", facts(one)),
  ];
}
