// The part of the operators' page for sanitization records, which say what the hub knows about the cleaning of a host after each turnover.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const RECORDS = "/api/v1/admin/sanitization-records";
/** The colour of the tag for each verdict of a sanitization record. */
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
