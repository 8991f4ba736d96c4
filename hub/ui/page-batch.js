// The part of the operators' page for batches of onboardings. The hub joins the files page-*.js and page.js into one script.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const BATCHES = "/api/v1/admin/onboarding-batches";
/** Shows the state of a batch of onboardings. The page shows a finished batch as completed only if none of its hosts waits for a person. */
const batchTag = ({ done, failed }) => {
  if (!done) return tag("running");
  return failed === 0 ? tag("completed") : tag("needs a person", "bad");
};
const batchRow = (one) =>
  make("tr", [
    make("td", link(`#/batches/${one.batch_id}`, time(one.requested_at))),
    make("td", batchTag(one)),
    ...[one.total, one.succeeded, one.failed, one.cancelled].map((count) => make("td", count)),
    make("td", one.requested_by ?? ""),
  ]);
const batchTable = (rows) =>
  table(["Batch", "Status", "Hosts", "Succeeded", "Failed", "Cancelled", "Requested by"], rows.map(batchRow));

async function batch(id) {
  const [{ failures, ...one }, hosts] = await Promise.all([
    ask(`${BATCHES}/${id}`),
    ask(`/api/v1/admin/onboardings?batch_id=${id}&limit=${FIRST_LOOK}`),
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
  const path = `${BATCHES}/${id}`;
  const title = `Batch of ${time(one.requested_at)}`;
  const count = (number) => (number === 1 ? "1 host" : `${number} hosts`);
  const buttons = [
    ...(one.failed > 0
      ? [
          actionButton(
            path,
            "Recover each failed host with its recommended verb",
            "recover",
            `${count(one.failed)} of this batch`,
            { first: true },
          ),
        ]
      : []),
    ...(one.done
      ? []
      : [
          actionButton(
            path,
            "Stop what is under way, and undo where possible",
            "cancel",
            "what is under way of this batch",
          ),
        ]),
  ];
  return [
    section(title, batchTable([one]), verbs(buttons)),
    section("What failed", table(["Failure", "Hosts", "Next verb", "Next", "Which"], failures.map(failureRow))),
    section("Its hosts", operations("onboardings", hosts.items), ...moreOf("onboardings", [hosts], { batch_id: id })),
    section("Record", facts(one)),
  ];
}
