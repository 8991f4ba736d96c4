import { TASKS } from "../../shared/tasks/index.ts";
import type { Task } from "../db/schema/index.ts";

type Grant = Pick<Task, "type" | "state" | "result" | "errorCode" | "errorMessage">;

/** The new status of an allocation after the end of the task that makes the tenant's account. */
export type GrantVerdict =
  | { readonly to: "active"; readonly message: string }
  | { readonly to: "failed"; readonly code: string; readonly message: string };

const failed = (code: string, message: string): GrantVerdict => ({ to: "failed", code, message });

/**
 * Decides from the finished task `allocation.grant_user` whether the tenant can log in. The task `allocation.grant_user` succeeds even if one of its
 * steps failed, so the outcomes of the steps decide (architecture 14.3). A missing task `allocation.grant_user` does not count as success. A result
 * of the task `allocation.grant_user` that the hub cannot read does not count as success.
 */
export function judgeGrant(task: Grant | null): GrantVerdict {
  if (task === null) return failed("task_missing", "The task that makes the account is gone, so nobody knows its end");
  if (task.state !== "succeeded") {
    const code = task.errorCode ?? task.state;
    return failed(code, task.errorMessage ?? `The task ${task.type} is ${task.state}`);
  }
  const result = TASKS["allocation.grant_user"].result.safeParse(task.result);
  if (!result.success || result.data.uid === null)
    return failed("result_unreadable", `The result of the task ${task.type} does not prove that the account exists`);
  const undone = result.data.steps.find(({ outcome }) => outcome !== "ok" && outcome !== "skipped");
  if (undone !== undefined)
    return failed(
      `step_${undone.outcome}`,
      `The step ${undone.step} for ${undone.target} is ${undone.outcome}: ${undone.message}`,
    );
  return { to: "active", message: "The account is made, and the tenant can log in" };
}

/** Returns the uid that the agent gave to the tenant's account, also if a later step failed; null if no result names a uid. */
export function grantedUid(task: Pick<Task, "state" | "result"> | null): number | null {
  if (task?.state !== "succeeded") return null;
  return TASKS["allocation.grant_user"].result.safeParse(task.result).data?.uid ?? null;
}

const BY_CODE: Readonly<Record<string, string>> = {
  account_exists:
    "Release the allocation, and allocate the node with another login user. Or remove the account on the host, then grant the allocation again.",
  allocation_ended: "Release the allocation, and make a new one.",
  deadline_passed: "Bring the node's agent back, then grant the allocation again; or release it.",
  lease_lapsed: "Bring the node's agent back, then grant the allocation again; or release it.",
};

/** Returns the operator's next action after the task that makes the tenant's account has failed with the error code `code`. */
export const afterFailedGrant = (code: string | null): string =>
  BY_CODE[code ?? ""] ?? "Correct the cause on the host, then grant the allocation again; or release it.";
