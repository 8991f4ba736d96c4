import { type Failure, failure } from "../../../shared/failures.ts";
import type { CleaningStep } from "../../../shared/tasks/cleaning-step.ts";
import type { Task } from "../../db/schema/index.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/** A failure's message names at most this many steps. The task's result has all of them. */
const NAMED = 5;

/**
 * Returns the failure of a task whose steps did not all end well, or null if they did (decision C1). A step that the host cannot do (`unsupported`)
 * does not count as done. A step is `skipped` only if there was nothing to do.
 */
export function failedSteps(
  context: DecommissionContext,
  steps: readonly CleaningStep[],
  task: Pick<Task, "id" | "type">,
): Failure | null {
  const bad = steps.filter(({ outcome }) => outcome !== "ok" && outcome !== "skipped");
  if (bad.length === 0) return null;
  const named = bad
    .slice(0, NAMED)
    .map(({ step, target, outcome, message }) => `${step} ${target}: ${outcome}, ${message}`);
  const more = bad.length > NAMED ? ` And ${bad.length - NAMED} more.` : "";
  return failure(
    "upstream_transient",
    "cleaning_failed",
    `Host ${context.node.hostname} was not cleaned by ${task.type}: ${named.join("; ")}.${more}`.slice(0, 1_000),
    {
      node_id: context.node.id,
      task_id: task.id,
      task_type: task.type,
      failed_steps: bad.slice(0, 20).map(({ step, target, outcome }) => `${step} ${target}: ${outcome}`.slice(0, 256)),
    },
  );
}

/** How many steps ended in each way, for the message of a stage. */
export function tally(steps: readonly CleaningStep[]): string {
  const ok = steps.filter(({ outcome }) => outcome === "ok").length;
  return `${ok} steps done, ${steps.length - ok} with nothing to do`;
}
