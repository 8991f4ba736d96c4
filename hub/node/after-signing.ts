import { TASKS, type TaskResult } from "../../shared/tasks/index.ts";
import type { Task } from "../db/schema/index.ts";

/**
 * What the hub does with a sanitization record after the end of a task `node.sign_record`, in which an agent signs the record. If `next` is `store`,
 * the hub stores the sanitization record with the agent's signature. If `next` is `prepare_again`, the hub writes the sanitization record again,
 * because the agent's certificate or boot has changed. If `next` is `prepare_unsigned`, the hub writes the sanitization record as one that no agent
 * signs.
 */
export type AfterSigning =
  | { readonly next: "store"; readonly signed: TaskResult<"node.sign_record"> }
  | { readonly next: "prepare_again"; readonly reason: string }
  | { readonly next: "prepare_unsigned"; readonly reason: string };

/** The largest number of characters of a sanitization record's `unsigned_reason`. */
const MOST_REASON = 256;

/**
 * Decides the step after a task `node.sign_record`, by which the agent signs a sanitization record. `afterSigning` returns null until the task
 * `node.sign_record` has ended.
 */
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
