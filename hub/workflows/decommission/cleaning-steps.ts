import { type Evidence, type Failure, failure } from "../../../shared/failures.ts";
import type { CleaningStep } from "../../../shared/tasks/cleaning-step.ts";
import type { Task } from "../../db/schema/index.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/** A failure's message names at most `NAMED` reasons, and the task's result contains all reasons why the host is not clean. */
const NAMED = 5;
const MOST_TOLD = 20;

export function notCleaned(
  { node }: Pick<DecommissionContext, "node">,
  reasons: readonly string[],
  task: Pick<Task, "id" | "type">,
  evidence: Evidence = {},
): Failure {
  const more = reasons.length > NAMED ? ` And ${reasons.length - NAMED} more.` : "";
  const named = reasons.slice(0, NAMED).map((reason) => reason.replace(/[.]$/, ""));
  return failure(
    "upstream_transient",
    "cleaning_failed",
    `Host ${node.hostname} was not cleaned by ${task.type}: ${named.join("; ")}.${more}`.slice(0, 1_000),
    {
      node_id: node.id,
      task_id: task.id,
      task_type: task.type,
      reasons: reasons.slice(0, MOST_TOLD).map((reason) => reason.slice(0, 256)),
      ...evidence,
    },
  );
}

/**
 * Returns the failure of a task in which a cleaning step did not end well, or null if all steps ended well (decision C1). A cleaning step with the
 * outcome `unsupported`, which the host cannot do, does not count as done.
 */
export function failedSteps(
  context: Pick<DecommissionContext, "node">,
  steps: readonly CleaningStep[],
  task: Pick<Task, "id" | "type">,
): Failure | null {
  const bad = steps.filter(({ outcome }) => outcome !== "ok" && outcome !== "skipped");
  if (bad.length === 0) return null;
  const reasons = bad.map(({ step, target, outcome, message }) => `${step} ${target}: ${outcome}, ${message}`);
  return notCleaned(context, reasons, task);
}

/** Says for a stage's message how many cleaning steps were done and how many had nothing to do. */
export function tally(steps: readonly CleaningStep[]): string {
  const ok = steps.filter(({ outcome }) => outcome === "ok").length;
  return `${ok} steps done, ${steps.length - ok} with nothing to do`;
}
