import { failure } from "../../../../shared/failures.ts";
import { readRecord, type VerdictReason } from "../../../../shared/sanitization-record.ts";
import { TASKS, type TaskResult } from "../../../../shared/tasks/index.ts";
import { enqueueTask } from "../../../db/queries/tasks.ts";
import { waitKey } from "../../../db/queries/workflow-wakes.ts";
import type { SanitizationRecordRow, Task } from "../../../db/schema/index.ts";
import { afterSigning } from "../../../node/after-signing.ts";
import { prepareRecord } from "../../../node/prepare-record.ts";
import { storeRecord } from "../../../node/store-record.ts";
import type { Done, Failed, Observation, Outcome, Wait } from "../../engine/stage.ts";
import { inFencedTx } from "../../services.ts";
import { StageFailure } from "../../stage-failure.ts";
import {
  cancelWork,
  isHistory,
  judgeTask,
  operationOf,
  settledTask,
  stageSeconds,
  taskSeconds,
  type WatchedWork,
} from "../agent-work.ts";
import { isForcedPast, isSystemGone } from "../cleaning-stage.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { mayClean } from "../keeps-status.ts";
import { turnoverOf } from "../turnover-record.ts";

/** The agent needs only milliseconds to sign a sanitization record. */
const SIGN_SECONDS = 900;
/**
 * If the node's chain of records or the agent's certificate changes before the hub stores the signed record, the hub rewrites the sanitization
 * record, at most `MOST_RECORDS` times.
 */
const MOST_RECORDS = 5;

/** The stage `record_sanitization` queues the task `node.sign_record` itself, because the hub writes the task's input in the same transaction. */
const SIGN: WatchedWork<"node.sign_record"> = {
  type: "node.sign_record",
  undoneBy: null,
  workSeconds: () => SIGN_SECONDS,
  isAskedFor: () => true,
  failed: (context, task, evidence) => notRecorded(context, task.errorMessage ?? `the task is ${task.state}`, evidence),
  waitsFor: () => "The agent to sign the sanitization record",
};

const notRecorded = ({ node }: DecommissionContext, why: string, evidence: Parameters<typeof failure>[3] = {}) =>
  failure(
    "upstream_transient",
    "cleaning_failed",
    `The cleaning of ${node.hostname} was not recorded: ${why}`.slice(0, 1_000),
    {
      node_id: node.id,
      ...evidence,
    },
  );

type Verdict = Done<DecommissionState> | Failed<DecommissionState> | Wait<DecommissionState>;

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { node, decommission, tenancy } = context;
  if (decommission.mode === "full_decommission") {
    if (await isSystemGone(context)) return { kind: "skipped", message: "The system of the host is gone" };
    if (tenancy === null) return { kind: "skipped", message: "The node had no tenant" };
  }
  if (!mayClean(decommission.mode, node.status))
    return { kind: "failed", failure: stateConflict(context, node.status, "recorded") };
  const task = await settledTask(context, SIGN);
  if (task?.state !== "succeeded" && (await isForcedPast(context, task))) return storeUnsigned(context);
  if (task === null || isHistory(context, task)) return { kind: "not_started" };
  const next = afterSigning(task);
  if (next === null) return judgeTask(context, SIGN, task) ?? { kind: "not_started" };
  switch (next.next) {
    case "store":
      return store(context, task, next.signed);
    case "prepare_again":
      return again(context, task, next.reason);
    case "prepare_unsigned":
      return { kind: "failed", failure: notRecorded(context, next.reason), patch: { failed_task_id: task.id } };
  }
}

/** Has the stage write another sanitization record, at most `MOST_RECORDS` times until an operator continues the decommission. */
function again(context: DecommissionContext, task: Task, why: string, patch: Partial<DecommissionState> = {}): Verdict {
  const written = (context.state.records_written ?? 0) + 1;
  const told = { ...patch, failed_task_id: task.id, records_written: written };
  if (written >= MOST_RECORDS) return { kind: "failed", failure: notRecorded(context, why), patch: told };
  return { kind: "wait", reason: `Another record to be written: ${why}`.slice(0, 300), seconds: 0, patch: told };
}

async function store(
  context: DecommissionContext,
  task: Task,
  signed: TaskResult<"node.sign_record">,
): Promise<Verdict> {
  const { text } = TASKS["node.sign_record"].input.parse(task.input);
  const { countersign } = context.services;
  const kept = await inFencedTx(context, (tx) => storeRecord(tx, { text, signed, countersign }));
  if ("stored" in kept) return verdictOn(context, kept.stored, task);
  switch (kept.refused) {
    case "chain_moved":
      return again(context, task, kept.message);
    case "tasks_unconfirmed":
      return again(context, task, kept.message, { unconfirmed_tasks: [...kept.tasks] });
    case "signature_wrong":
      return { kind: "failed", failure: notRecorded(context, kept.message), patch: { failed_task_id: task.id } };
  }
}

/**
 * Stores a sanitization record that no agent signed, after a person decided that a full decommission continues without the agent. An unsigned
 * sanitization record claims nothing, and is never `clean`.
 */
function storeUnsigned(context: DecommissionContext): Done<DecommissionState> {
  const { decommission, services } = context;
  const message = `Continued without the agent, as ${decommission.forcedBy} decided: ${decommission.forcedReason}`;
  return {
    kind: "done",
    message: `The record of the cleaning has no signature of the agent. ${message}`,
    commit: async (tx) => {
      await cancelWork(tx, operationOf(context), SIGN);
      const turnover = await turnoverOf(tx, context);
      const { text } = await prepareRecord(tx, { ...turnover, unsigned_reason: message.slice(0, 256) });
      const kept = await storeRecord(tx, { text, signed: null, countersign: services.countersign });
      if ("refused" in kept) throw new StageFailure(notRecorded(context, kept.message));
    },
  };
}

/**
 * The reasons for a sanitization verdict other than `clean` that do not keep the node out of service. Two of the reasons in `LEAVE_IN_SERVICE` come
 * from a person's decision: a request without an erase, and `force`, which continues without evidence of an erase. The reason `erase_not_compared`
 * means that the only evidence of the erase is MAAS's report about the whole machine (decision C5).
 */
const LEAVE_IN_SERVICE: readonly VerdictReason[] = ["erase_not_asked", "erase_waived", "erase_not_compared"];
/**
 * If the reason for a sanitization verdict is `erase_disproved`, the node returns to service only if the sanitization record names the person who
 * decided to continue.
 */
const WAIVABLE: VerdictReason = "erase_disproved";

/**
 * True if none of the reasons for the verdict in the node's sanitization record keeps the node out of service. A sanitization record has room for a
 * limited number of reasons for its verdict, so a reason that keeps the node out of service may be missing in the record.
 */
function leavesInService(row: SanitizationRecordRow): boolean {
  const record = readRecord(row.text);
  if (typeof record === "string" || record.cut.some(({ what }) => what === "reasons")) return false;
  const isWaived = typeof record.release?.disks_waived_by === "string";
  return record.reasons.every(({ code }) => LEAVE_IN_SERVICE.includes(code) || (isWaived && code === WAIVABLE));
}

/**
 * A node returns to service only if its sanitization record is `clean`, or would be `clean` with evidence of the erase of the disks (decisions C1 and
 * C5).
 */
function verdictOn(context: DecommissionContext, record: SanitizationRecordRow, task: Task): Verdict {
  const details = { record_id: record.recordId, verdict: record.verdict, task_id: task.id };
  if (record.verdict === "clean")
    return { kind: "done", message: `Record ${record.recordId} of the cleaning is signed`, details };
  // The host of a full decommission leaves the fleet, so no later tenant depends on the verdict in its sanitization record.
  if (context.decommission.mode === "full_decommission")
    return { kind: "done", message: `Record ${record.recordId} is signed and says ${record.verdict}`, details };
  if (leavesInService(record)) {
    const message = `Record ${record.recordId} is signed and says ${record.verdict}, only for what it says about the erase of the disks`;
    return { kind: "done", message, details };
  }
  const why = `record ${record.recordId} says ${record.verdict}; read it with get-sanitization-record`;
  return { kind: "failed", failure: notRecorded(context, why, details), patch: { failed_task_id: task.id } };
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  const { node, workflowId } = context;
  const task = await inFencedTx(context, async (tx) => {
    const { text, record } = await prepareRecord(tx, await turnoverOf(tx, context));
    const queued = await enqueueTask(tx, {
      nodeId: node.id,
      workflowId,
      type: SIGN.type,
      input: { text },
      idempotencyKey: `${SIGN.type}/${workflowId}/${record.record_id}`,
      deadlineSeconds: taskSeconds(context, SIGN),
    });
    return queued.task;
  });
  return { kind: "wait", reason: SIGN.waitsFor(context, task), seconds: 15, on: waitKey.task(task.id) };
}

const seconds = (context: DecommissionContext): number => stageSeconds(context, SIGN);

/** Writes the sanitization record of the operation, has the agent sign the record, and adds it to the node's chain of records (architecture 14.5). */
export const recordSanitization: DecommissionStageOf<"record_sanitization"> = {
  name: "record_sanitization",
  title: "Write the sanitization record and have the agent sign it",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds,
    failure: (context) => notRecorded(context, `the agent did not sign within ${seconds(context)} s. Resume.`),
  },
  retry: { maxAttempts: 3, baseSeconds: 5, maxSeconds: 60 },
  overrides: { post_deploy_connectivity_failure: { retry: "never" } },
  run,
  compensate: async (context) => ({
    kind: "done",
    message: "A stored record stays in the node's chain",
    commit: async (tx) => void (await cancelWork(tx, operationOf(context), SIGN)),
  }),
};
