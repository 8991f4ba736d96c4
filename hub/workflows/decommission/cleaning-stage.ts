import { failure } from "../../../shared/failures.ts";
import type { TaskResult, TaskType } from "../../../shared/tasks/index.ts";
import { TASKS } from "../../../shared/tasks/index.ts";
import type { DecommissionStage } from "../../../shared/workflow-status.ts";
import { isAgentGone } from "../../db/queries/agent-sessions.ts";
import { isHostReleased } from "../../db/queries/machine-releases.ts";
import type { Task } from "../../db/schema/index.ts";
import type { Observation, Outcome } from "../engine/stage.ts";
import {
  type AgentWork,
  cancelWork,
  isHistory,
  judgeTask,
  operationOf,
  settledTask,
  stageSeconds,
  startWork,
} from "./agent-work.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "./decommission-context.ts";
import { mayClean } from "./keeps-status.ts";

type Verdict = Extract<Outcome<DecommissionState>, { readonly kind: "done" | "failed" }>;

interface CleaningStage<Name extends DecommissionStage, T extends TaskType> {
  readonly name: Name;
  readonly title: string;
  readonly work: AgentWork<T>;
  /** The reason why the stage has nothing to do; null if the stage has work. */
  readonly nothingToDo: (context: DecommissionContext) => string | null;
  /** What a cancelled task may leave on the host, with the next action, as the end of a sentence; undefined if it leaves nothing. */
  readonly cancelLeaves?: (context: DecommissionContext) => string;
  /** Returns the stage's verdict on a failed task with which the operation can continue by itself, or null if a person must look. */
  readonly goOnAfter?: (context: DecommissionContext, task: Task) => Verdict | null;
  /** If a cleaning step in the task's result failed, `decide` must not return the verdict `done`. */
  readonly decide: (context: DecommissionContext, result: TaskResult<T>, task: Task) => Verdict | Promise<Verdict>;
}

/**
 * A task that finished before the workflow entered a cleaning stage proves nothing about the host's present state. When an operator runs a cleaning
 * stage once more, the stage queues a new task.
 */
export function cleaningStage<Name extends DecommissionStage, T extends TaskType>(
  spec: CleaningStage<Name, T>,
): DecommissionStageOf<Name> {
  const { work } = spec;
  return {
    name: spec.name,
    title: spec.title,
    reentry: { rule: "observe_first", observe: (context) => observe(context, spec) },
    timeout: {
      seconds: (context) => stageSeconds(context, work),
      failure: (context) =>
        failure(
          "upstream_transient",
          "cleaning_failed",
          `The agent of ${context.node.hostname} did not end the task ${work.type} in time.`,
          { node_id: context.node.id, agent_connected: context.session !== null, task_type: work.type },
        ),
    },
    retry: { maxAttempts: 2, baseSeconds: 5, maxSeconds: 60 },
    overrides: { post_deploy_connectivity_failure: { retry: "never" } },
    run: (context) => startWork(context, work),
    compensate: async (context) => ({
      kind: "done",
      message: `The task ${work.type} is cancelled if the agent had not ended it${spec.cancelLeaves?.(context) ?? ""}`,
      commit: async (tx) => void (await cancelWork(tx, operationOf(context), work)),
    }),
  };
}

/** True if the decommission is a full one, and MAAS has already released the host's system or the node was removed. */
export async function isSystemGone({ decommission, node, services }: DecommissionContext): Promise<boolean> {
  if (decommission.mode !== "full_decommission") return false;
  if (node.status === "removing" || node.status === "deleted") return true;
  return isHostReleased(services.db, node);
}

/** An agent that is away for less than `GRACE_SECONDS` reconnects, for example after a restart of the hub. */
const GRACE_SECONDS = 300;

/**
 * Only a full decommission continues without the node's agent, because its host takes no tenant any more. An operator's `force` lets the decommission
 * continue without an agent that is gone, but not without one that reconnects or still works on the stage's task.
 */
export async function isForcedPast(context: DecommissionContext, task: Task | null): Promise<boolean> {
  const { decommission, node, services, now } = context;
  if (decommission.mode !== "full_decommission" || decommission.forcedAt === null) return false;
  if (task?.state === "running" && task.leaseUntil !== null && task.leaseUntil > now) return false;
  return isAgentGone(services.db, node, { before: decommission.forcedAt, graceSeconds: GRACE_SECONDS });
}

async function observe<Name extends DecommissionStage, T extends TaskType>(
  context: DecommissionContext,
  spec: CleaningStage<Name, T>,
): Promise<Observation<DecommissionState>> {
  const { node, decommission } = context;
  if (await isSystemGone(context)) return { kind: "skipped", message: "The system of the host is gone" };
  if (!mayClean(decommission.mode, node.status))
    return { kind: "failed", failure: stateConflict(context, node.status, "cleaned") };
  const nothing = spec.nothingToDo(context);
  if (nothing !== null) return { kind: "skipped", message: nothing };
  const task = await settledTask(context, spec.work);
  if (task?.state !== "succeeded" && (await isForcedPast(context, task)))
    return {
      kind: "skipped",
      message: `Continued without the agent, as ${decommission.forcedBy} decided: ${decommission.forcedReason}`,
      commit: async (tx) => void (await cancelWork(tx, operationOf(context), spec.work)),
    };
  if (task?.state !== "succeeded") {
    const judged = judgeTask(context, spec.work, task) ?? { kind: "not_started" };
    return (judged.kind === "failed" && task !== null && spec.goOnAfter?.(context, task)) || judged;
  }
  if (isHistory(context, task)) return { kind: "not_started" };
  const result = TASKS[spec.work.type].result.safeParse(task.result);
  if (!result.success) {
    const message = `The result of the task ${spec.work.type} of ${node.hostname} cannot be read, so the host does not count as clean. Resume.`;
    const unread = failure("upstream_transient", "cleaning_failed", message, { node_id: node.id, task_id: task.id });
    return { kind: "failed", failure: unread, patch: { failed_task_id: task.id } };
  }
  const verdict = await spec.decide(context, result.data as TaskResult<T>, task);
  return verdict.kind === "failed" ? { ...verdict, patch: { ...verdict.patch, failed_task_id: task.id } } : verdict;
}
