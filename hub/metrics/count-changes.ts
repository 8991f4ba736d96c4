import type { Change } from "../db/committed.ts";
import { nodeMoves } from "./counted/node-moves.ts";
import { stageSeconds, workflowFailures, workflowsEnded } from "./counted/workflow-runs.ts";

/** Counts what committed transactions have changed: moves of nodes, ends of stages, and ends of workflows. */
export function countChanges(changes: readonly Change[]): void {
  for (const change of changes) countChange(change);
}

function countChange(change: Change): void {
  switch (change.what) {
    case "node_moved":
      nodeMoves.add({ from: change.from, to: change.to, owner: change.owner });
      return;
    case "workflow_ended":
      workflowsEnded.add({ kind: change.kind, status: change.status });
      return;
    case "stage_ended":
      countStage(change);
      return;
    case "event":
      return;
  }
}

/** If an operator's command ends a stage, the hub records no duration of the stage, because the stage may have failed days ago. */
function countStage({
  kind,
  stage,
  outcome,
  failure,
  byRun,
  enteredAt,
  endedAt,
}: Change & { what: "stage_ended" }): void {
  if (failure !== null && byRun && (outcome === "failed" || outcome === "retrying"))
    workflowFailures.add({ kind, class: failure.class, result: outcome === "failed" ? "failed" : "retry" });
  if (!byRun || enteredAt === null || outcome === "retrying") return;
  stageSeconds.observe({ kind, stage, outcome }, Math.max(0, (endedAt.getTime() - enteredAt.getTime()) / 1000));
}
