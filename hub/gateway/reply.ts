import type { WireReply } from "../../shared/protocol/frames.ts";
import { RUNNER_ERRORS, TASKS } from "../../shared/tasks/index.ts";
import { isTaskType } from "../../shared/tasks/task-types.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import type { TaskEnding } from "../db/queries/tasks.ts";

/**
 * The pause in seconds before the hub repeats the offer of a task. The pause before the next offer doubles with each attempt of the task, up to five
 * minutes.
 */
export const retryDelaySeconds = (attempts: number): number => Math.min(300, 2 ** Math.min(attempts, 9));

/**
 * Derives the ending of a task from an agent's reply; every possible reply leads to an ending of the task. The task fails if its result does not
 * match the schema of the task's type, or if the task's type does not define the reported error.
 */
export function endingOf(type: string, attempts: number, reply: WireReply): TaskEnding {
  if (!isTaskType(type))
    return { state: "failed", errorCode: "unsupported_task", errorMessage: `This hub has no task type ${type}.` };
  const spec = TASKS[type];
  if (reply.ok) {
    const parsed = spec.result.safeParse(reply.result);
    if (parsed.success) return { state: "succeeded", result: parsed.data };
    return {
      state: "failed",
      errorCode: "invalid_result",
      errorMessage: "The agent's result does not match the task's type. Check the agent's version.",
    };
  }
  const ending = { errorCode: reply.error, errorMessage: withoutCredentials(reply.message) };
  if (reply.error === "cancelled") return { state: "cancelled", ...ending };
  const errors: Readonly<Record<string, string>> = spec.errors;
  const handling = errors[reply.error] ?? (RUNNER_ERRORS as Readonly<Record<string, string>>)[reply.error] ?? "fail";
  const again = handling === "retry" || (handling === "retry_unless_destructive" && !spec.destructive);
  return again
    ? { state: "queued", ...ending, delaySeconds: retryDelaySeconds(attempts) }
    : { state: "failed", ...ending };
}
