// The part of the operators' page for onboardings and decommissions: their lists, their details, and their actions.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
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

/** The kinds of operations, each with its title, its path in the API, and the field of an answer that holds the operation's id. */
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
  if (!one.error_code && !one.error_message) return make("td", one.waiting_for, "why");
  const code = one.error_code ? [make("code", `${one.failure_class}/${one.error_code}`), " "] : [];
  return make("td", [...code, one.error_message, make("span", `Next: ${one.next_action}`, "next")], "why");
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
  table(
    ["Host", "Status", "Stage", "What it waits for, or why it failed", "Last change"],
    rows.map(operationRow(kind)),
  );

const pagesOf = (kind, statuses, limit) =>
  Promise.all(
    statuses.map(async (status) => ({
      status,
      ...(await ask(`${KINDS[kind].path}?status=${status}&limit=${limit}`)),
    })),
  );

const classesOf = (failed) => {
  const classes = Map.groupBy(failed, (one) => one.failure_class);
  return make(
    "p",
    [...classes].map(([name, rows]) => make("span", `${rows.length} x ${words(name)}`, "tag bad")),
    "counts",
  );
};

const history = (events) =>
  table(
    ["When", "Stage", "Attempt", "Outcome", "What happened"],
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

/**
 * Returns the verbs that can have an effect on an operation in the given status, the recommended verb first. The hub itself decides about each verb,
 * and refuses a verb that is not allowed.
 */
const verbsOf = (one) => {
  if (ENDED.includes(one.status)) return [];
  if (!one.status.startsWith("failed")) return ["cancel", "mark_manual_intervention"];
  const first = one.next_verb ?? "retry";
  return [first, ...Object.keys(VERBS).filter((verb) => verb !== first)];
};
const verbButton = (path, recommended, host) => (verb) =>
  actionButton(path, VERBS[verb], verb, host, { first: verb === recommended });
async function operation(kind, id) {
  const { title, path } = KINDS[kind];
  const { events, error_details: evidence, ...one } = await ask(`${path}/${id}`);
  const more =
    kind === "decommissions" && one.mode !== "release" && !ENDED.includes(one.status)
      ? [actionButton(`${path}/${id}`, "Continue without an agent that will never answer", "force", one.hostname)]
      : [];
  const code = one.error_code ? [make("code", `${one.failure_class}/${one.error_code}`), " "] : [];
  const failed = one.error_message
    ? [
        section(
          one.error_code ? "Why it failed" : "What it left",
          make("p", [...code, one.error_message]),
          make("p", `Next: ${one.next_action}`, "next"),
          facts(evidence),
        ),
      ]
    : [];
  return [
    section(
      `${title} of ${one.hostname}`,
      make("p", [tag(one.status), " ", progressOf(one), one.waiting_for ? `: ${one.waiting_for}` : ""]),
      verbs(verbsOf(one).map(verbButton(`${path}/${id}`, one.next_verb, one.hostname)), more),
    ),
    ...failed,
    section("History", history(events)),
    section("Record", facts(one)),
  ];
}
