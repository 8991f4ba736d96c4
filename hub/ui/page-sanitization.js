// The part of the operators' page for sanitization records: what the hub knows about the cleaning of a host after each turnover. The hub joins the
// files page-*.js and page.js into one script.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const RECORDS = "/api/v1/admin/sanitization-records";
/** For each verdict of a sanitization record the colour of its tag. */
const VERDICTS = { clean: "good", not_clean: "bad", incomplete: "busy" };

function recordRow(one) {
  const row = make("tr", [
    make("td", link(`#/nodes/${one.node_id}`, one.hostname)),
    make("td", one.sequence),
    make("td", tag(one.verdict, VERDICTS[one.verdict])),
    make("td", one.tenant ?? "-"),
    make("td", words(one.mode)),
    make("td", words(one.trust)),
    make("td", one.signed_by_agent ? "agent and hub" : "hub only"),
    make("td", time(one.created_at)),
    make("td", make("code", one.record_id)),
  ]);
  // A node has one sanitization record for each turnover, so the link to the node does not identify a row.
  row.dataset.key = one.record_id;
  return row;
}
const recordTable = (rows) =>
  table(
    ["Host", "Number", "Verdict", "Tenant", "Mode", "Trust", "Signed by", "Written", "Record"],
    rows.map(recordRow),
  );
