import { TASKS, type TaskResult } from "../../shared/tasks/index.ts";
import type { Task } from "../db/schema/index.ts";

/**
 * What follows from the end of a task `node.sign_record`: the record is stored with the signature, the record is prepared again because the agent has
 * another certificate or boot by now, or the record is prepared again as one that no agent signs.
 */
export type AfterSigning =
  | { readonly next: "store"; readonly signed: TaskResult<"node.sign_record"> }
  | { readonly next: "prepare_again"; readonly reason: string }
  | { readonly next: "prepare_unsigned"; readonly reason: string };

/** The longest reason that a record takes (`unsigned_reason`). */
const MOST_REASON = 256;

/** Decides what follows from a task that signs a record; null while the task is not over. */
export function afterSigning(task: Pick<Task, "state" | "result" | "errorCode" | "errorMessage">): AfterSigning | null {
  switch (task.state) {
    case "queued":
    case "offered":
    case "running":
    case "cancelling":
      return null;
    case "succeeded": {
      const signed = TASKS["node.sign_record"].result.safeParse(task.result);
      return signed.success
        ? { next: "store", signed: signed.data }
        : { next: "prepare_unsigned", reason: "the agent's answer is no signature of a record" };
    }
    case "failed":
    case "expired":
    case "cancelled": {
      const reason = `${task.errorCode ?? task.state}: ${task.errorMessage ?? "the agent gave no reason"}`.slice(
        0,
        MOST_REASON,
      );
      return { next: task.errorCode === "agent_differs" ? "prepare_again" : "prepare_unsigned", reason };
    }
  }
}
