import type { NodeStatus } from "../../shared/node-status.ts";
import type { RepairMode } from "../../shared/repair.ts";
import type { RecordVerdict } from "../../shared/sanitization-record.ts";

/** The facts that decide whether a repaired machine may leave its repair. */
export interface CheckFacts {
  readonly mode: RepairMode;
  readonly nodeStatus: NodeStatus | null;
  /** The operation that holds the node. */
  readonly heldBy: string | null;
  /** The id of the node's allocation that has not ended; null if there is none. */
  readonly allocation: string | null;
  /** The reasons why the node is not ready, each with what to do about it. */
  readonly lacking: readonly string[];
  /** The newest sanitization record whose cleaning began after the end of the repair work; null if there is none. */
  readonly record: {
    readonly id: string;
    readonly verdict: RecordVerdict;
    /** True if the last person who validated the sanitization record has rejected it. */
    readonly isRejected: boolean;
    readonly at: Date;
  } | null;
  /** The time of the newest passed validation of the machine in the present repair attempt. */
  readonly validatedAt: Date | null;
}

export const CHECK_CODES = [
  "node_gone",
  "in_use",
  "held_by_operation",
  "not_cleaned",
  "not_clean",
  "record_rejected",
  "out_of_service",
  "not_ready",
  "not_validated",
  "validated_before_cleaning",
] as const;
export interface FailedCheck {
  readonly code: (typeof CHECK_CODES)[number];
  readonly message: string;
  readonly next_action: string;
}

const CLEAN =
  "clean the node with decommission-node (mode soft_reset, or reimage after work with root), and wait for its sanitization record";
const VALIDATE = "test the machine, then validate-repair with the result passed or failed";

/**
 * Returns all checks that the repaired machine has not passed, in the order in which a person has to see to them. A machine leaves its repair only
 * without a failed check: it was cleaned after the work, is ready, and was validated after the cleaning (repair 5.1). After an online repair, in
 * which the tenant kept the machine, the machine needs no cleaning.
 */
export function failedChecks(facts: CheckFacts): FailedCheck[] {
  const { nodeStatus, heldBy, lacking } = facts;
  const failed: FailedCheck[] = [];
  const fail = (code: FailedCheck["code"], message: string, next_action: string) =>
    failed.push({ code, message, next_action });
  if (nodeStatus === null || nodeStatus === "deleted") {
    fail("node_gone", "the node was removed", "wait some seconds, and the hub ends the case");
    return failed;
  }
  if (heldBy !== null)
    fail("held_by_operation", `operation ${heldBy} holds the node`, "wait for its end, or recover it");
  if (facts.mode === "full") failed.push(...failedCleaning(facts));
  if (nodeStatus !== "active")
    fail("out_of_service", `the node is ${nodeStatus}`, "bring it back to the status active");
  for (const one of lacking) fail("not_ready", one, "see to that first");
  const { record, validatedAt } = facts;
  if (validatedAt === null) fail("not_validated", "nobody has validated the machine after the work", VALIDATE);
  else if (facts.mode === "full" && record !== null && validatedAt < record.at)
    fail("validated_before_cleaning", "the machine was validated before it was cleaned", VALIDATE);
  return failed;
}

function failedCleaning({ allocation, record }: CheckFacts): FailedCheck[] {
  const failed: FailedCheck[] = [];
  if (allocation !== null)
    failed.push({
      code: "in_use",
      message: `allocation ${allocation} of the node has not ended`,
      next_action: "release it, and wait for the end of its turnover",
    });
  if (record === null)
    failed.push({
      code: "not_cleaned",
      message: "no sanitization record is about a cleaning after the work",
      next_action: CLEAN,
    });
  else if (record.verdict !== "clean")
    failed.push({
      code: "not_clean",
      message: `sanitization record ${record.id} has the verdict ${record.verdict}`,
      next_action: CLEAN,
    });
  else if (record.isRejected)
    failed.push({
      code: "record_rejected",
      message: `a person has rejected sanitization record ${record.id}`,
      next_action: CLEAN,
    });
  return failed;
}
