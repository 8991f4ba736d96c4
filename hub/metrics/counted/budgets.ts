import { counter, upTo } from "./family.ts";

export const budgetsExceeded = counter({
  name: "muster_budget_exceeded_total",
  help: "Requests, frames and connections above a budget of one node, one address or one API token, which the hub refused or delayed.",
  labels: { of: ["node", "address", "token"], budget: upTo(32) },
});
