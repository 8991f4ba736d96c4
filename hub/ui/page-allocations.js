// The part of the operators' page for allocations: which tenant uses which node, and the actions on an allocation.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const ALLOCATIONS = "/api/v1/admin/allocations";
const ALLOCATION_STATUSES = ["granting", "active", "failed", "ending", "ended"];
/** The actions of an operator on an allocation, each with the statuses of allocations for which the page offers the action. */
const ALLOCATION_ACTIONS = {
  grant: { on: ["failed"], title: "Have the agent make the tenant's account again" },
  release: { on: ["granting", "active", "failed"], title: "End the allocation, and clear the node of the tenant" },
  force_release: {
    on: ["granting", "active", "failed", "ending"],
    title: "End the allocation even if another operation holds the node; that operation is cancelled",
  },
};
const allocationActions = (one) =>
  Object.entries(ALLOCATION_ACTIONS)
    .filter(([, { on }]) => on.includes(one.status))
    .map(([verb, { title }]) =>
      actionButton(`${ALLOCATIONS}/${one.id}`, title, verb, `the allocation of ${one.hostname} to ${one.tenant}`),
    );
function allocationRow(one) {
  const why = [one.error_code, one.error_message, one.next_action && `Next: ${one.next_action}`, one.end_reason];
  const row = make("tr", [
    make("td", link(`#/nodes/${one.node_id}`, one.hostname)),
    make("td", one.tenant),
    make("td", tag(one.status)),
    make("td", one.root ? `${one.login_user}, with root` : one.login_user),
    make("td", time(one.created_at)),
    make("td", one.ended_at || one.ends_at ? time(one.ended_at ?? one.ends_at) : ""),
    make("td", why.filter(Boolean).join(" "), "why"),
    make("td", verbs(allocationActions(one))),
  ]);
  // A table of allocations may have several rows for one node, so the link to the node does not identify a row.
  row.dataset.key = one.id;
  return row;
}
const allocationTable = (rows) =>
  table(["Host", "Tenant", "Status", "Account", "Since", "Ends", "Why", "Actions"], rows.map(allocationRow));
