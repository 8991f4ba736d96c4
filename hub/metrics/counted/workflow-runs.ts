import { WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { counter, histogram, upTo } from "./family.ts";

const kind = upTo(16);
const stage = upTo(64);

export const workflowClaims = counter({
  name: "muster_workflow_claims_total",
  help: "Claims of workflows; from says whether the workflow waited in the queue, or its lease of another run had expired.",
  labels: { from: ["queue", "expired_lease"] },
});

export const workflowClaimSeconds = histogram({
  name: "muster_workflow_claim_latency_seconds",
  help: "Time from the moment when a workflow was due to its claim by a hub.",
  labels: {},
  buckets: [0.05, 0.25, 1, 5, 30, 120],
});

export const workflowMoves = counter({
  name: "muster_workflow_moves_total",
  help: "Runs of workflow stages, by what became of the result: it was committed, it did not count as an attempt, another hub had taken the workflow, or the database did not take it.",
  labels: { kind, result: ["committed", "uncounted", "fence_lost", "aborted", "not_committed"] },
});

export const workflowLeasesLost = counter({
  name: "muster_workflow_leases_lost_total",
  help: "Leases on workflows that the hub lost during a run: another hub took the workflow, or the hub could not renew the lease in time.",
  labels: { because: ["taken", "not_renewed"] },
});

export const stageSeconds = histogram({
  name: "muster_workflow_stage_seconds",
  help: "Time that workflows spent in a stage, from its entry to its end, by how the stage ended.",
  labels: { kind, stage, outcome: ["succeeded", "skipped", "returned", "failed", "compensated"] },
  buckets: [1, 5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400],
});

export const workflowFailures = counter({
  name: "muster_workflow_failures_total",
  help: "Failed attempts of workflow stages, by failure class; result says whether the engine retries the stage or the workflow failed.",
  labels: { kind, class: upTo(24), result: ["retry", "failed"] },
});

export const workflowsEnded = counter({
  name: "muster_workflows_ended_total",
  help: "Workflows that ended or failed, by their status at the end.",
  labels: { kind, status: WORKFLOW_STATUSES },
});
