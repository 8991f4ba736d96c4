import type { Evidence, Failure } from "../../../shared/failures.ts";
import { failure } from "../../../shared/failures.ts";
import { isUnfinished } from "../../../shared/task-state.ts";
import type { TaskInput, TaskType } from "../../../shared/tasks/index.ts";
import { countTasksOf, type NodeOperation, newestTaskOf, readTask } from "../../db/queries/task-reads.ts";
import { cancelTask, enqueueTask, lapseTasks } from "../../db/queries/tasks.ts";
import { waitKey } from "../../db/queries/workflow-wakes.ts";
import type { Task } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { Failed, Wait } from "../engine/stage.ts";
import { inFencedTx } from "../services.ts";
import { UNKNOWN_TYPE } from "../unknown-task-type.ts";
import type { DecommissionContext, DecommissionState } from "./decommission-context.ts";

/** A decommission stage queues its task, waits for the task's end, and queues a new task if the task was lost (state model 8). */
export interface AgentWork<T extends TaskType> {
  readonly type: T;
  /**
   * The type of the task that reverses a task of the type `type`, as `node.undrain` reverses `node.drain`; null if no such type exists. If the
   * operation's newest task is of the reversing type `undoneBy`, its earlier task of the type `type` no longer counts as the current task.
   */
  readonly undoneBy: TaskType | null;
  input(context: DecommissionContext, tx: Tx): TaskInput<T> | Promise<TaskInput<T>>;
  /**
   * The seconds that a connected agent may take for the stage's task. A task's deadline is the sum of `workSeconds` and the operator's
   * `agent_wait_seconds`.
   */
  workSeconds(context: DecommissionContext): number;
  /** False if the task no longer fits the operator's request, e.g. after the operator gave `force`; the stage then replaces the task. */
  isAskedFor(context: DecommissionContext, task: Task): boolean;
  failed(context: DecommissionContext, task: Task, evidence: Evidence): Failure;
  waitsFor(context: DecommissionContext, task: Task): string;
}

/** The description of a stage's agent task without the function `input`, for a stage that makes the task's input only when it queues the task. */
export type WatchedWork<T extends TaskType> = Omit<AgentWork<T>, "input">;

const LOOK_AGAIN_SECONDS = 15;

export const operationOf = ({ node, workflowId }: Pick<DecommissionContext, "node" | "workflowId">): NodeOperation => ({
  nodeId: node.id,
  workflowId,
});

export async function currentTask(
  db: Db | Tx,
  operation: NodeOperation,
  { type, undoneBy }: Pick<AgentWork<TaskType>, "type" | "undoneBy">,
): Promise<Task | null> {
  const task = await newestTaskOf(db, operation, undoneBy === null ? [type] : [type, undoneBy]);
  return task?.type === type ? task : null;
}

/** If the lease of the task's delivery has expired, `settledTask` first queues the task for another delivery or ends the task. */
export async function settledTask<T extends TaskType>(
  context: DecommissionContext,
  work: WatchedWork<T>,
): Promise<Task | null> {
  const task = await currentTask(context.services.db, operationOf(context), work);
  if (task === null || !isUnfinished(task.state) || task.leaseUntil === null || task.leaseUntil > context.now)
    return task;
  return inFencedTx(context, async (tx) => {
    await lapseTasks(tx, task.id);
    return readTask(tx, task.id);
  });
}

/**
 * True for an agent's task that ended before the workflow entered the present stage, or whose failure the stage has already reported. The stage
 * ignores a task for which `isHistory` is true, and queues a new task for the agent.
 */
export const isHistory = (context: DecommissionContext, task: Task): boolean =>
  task.id === context.state.failed_task_id || (task.finishedAt !== null && task.finishedAt < context.enteredAt);

/** Returns the stage's verdict on a task that has not succeeded, or null if the stage must queue another task. */
export function judgeTask<T extends TaskType>(
  context: DecommissionContext,
  work: WatchedWork<T>,
  task: Task | null,
): Wait<DecommissionState> | Failed<DecommissionState> | null {
  if (task === null || !work.isAskedFor(context, task)) return null;
  if (isUnfinished(task.state)) return unreachable(context, task) ?? waitFor(context, work, task);
  if (isHistory(context, task)) return null;
  if (task.state === "expired" && (task.attempts === 0 || context.session === null))
    return { kind: "failed", failure: agentUnreachable(context, task) };
  const evidence = evidenceOf(context, task);
  if (task.errorCode === UNKNOWN_TYPE)
    return { kind: "failed", failure: agentOutdated(context, task), patch: { failed_task_id: task.id } };
  return { kind: "failed", failure: work.failed(context, task, evidence), patch: { failed_task_id: task.id } };
}

function waitFor<T extends TaskType>(
  context: DecommissionContext,
  work: WatchedWork<T>,
  task: Task,
): Wait<DecommissionState> {
  return {
    kind: "wait",
    reason: reasonOf(context, work, task),
    seconds: LOOK_AGAIN_SECONDS,
    on: waitKey.task(task.id),
  };
}

function reasonOf<T extends TaskType>(context: DecommissionContext, work: WatchedWork<T>, task: Task): string {
  if (task.state === "running") return work.waitsFor(context, task);
  if (task.state === "cancelling") return `The agent to stop the cancelled task ${work.type}`;
  if (context.session === null) return `The agent, which is offline, to connect and take the task ${work.type}`;
  return `The agent to take the task ${work.type}`;
}

/** Returns a failure if the agent's task is still queued and no agent has connected for as long as the operator's request allows. */
function unreachable(context: DecommissionContext, task: Task): Failed<DecommissionState> | null {
  if (context.session !== null || task.state !== "queued") return null;
  const since = Math.max(context.enteredAt.getTime(), task.updatedAt.getTime());
  if (context.now.getTime() - since < context.input.agent_wait_seconds * 1000) return null;
  return { kind: "failed", failure: agentUnreachable(context, task) };
}

const agentUnreachable = (context: DecommissionContext, task: Task): Failure =>
  failure(
    "post_deploy_connectivity_failure",
    "agent_unreachable",
    task.state === "expired"
      ? `The agent of ${context.node.hostname} did not finish the task ${task.type} before ${task.deadline.toISOString()} and reported no result: ${task.errorMessage ?? "the cause is unknown"}. ${context.session === null ? "Bring the agent back and resume" : "Resume"}.`
      : `The agent of ${context.node.hostname} did not connect within ${context.input.agent_wait_seconds} s to take the task ${task.type}. Bring the agent back and resume.`,
    evidenceOf(context, task),
  );

const agentOutdated = (context: DecommissionContext, task: Task): Failure =>
  failure(
    "upstream_transient",
    "agent_outdated",
    `The agent of ${context.node.hostname} is older than the hub and has no task ${task.type}. Update the agent and resume.`,
    evidenceOf(context, task),
  );

const evidenceOf = (context: DecommissionContext, task: Task): Evidence => ({
  node_id: context.node.id,
  node_status: context.node.status,
  agent_connected: context.session !== null,
  last_agent_contact_at: context.node.lastAgentContactAt?.toISOString() ?? null,
  task_id: task.id,
  task_state: task.state,
  task_error: task.errorCode,
  task_attempts: task.attempts,
});

/** A task that waits for an absent agent does not expire before the operator's `agent_wait_seconds` have passed. */
export const taskSeconds = <T extends TaskType>(context: DecommissionContext, work: WatchedWork<T>): number =>
  context.input.agent_wait_seconds + work.workSeconds(context);

/** A stage waits for its task until `AFTER_DEADLINE_SECONDS` after the task's deadline, so that the stage reports the expired task with evidence. */
const AFTER_DEADLINE_SECONDS = 60;

export const stageSeconds = (context: DecommissionContext, ...works: readonly WatchedWork<TaskType>[]): number =>
  works.reduce((sum, work) => sum + taskSeconds(context, work), AFTER_DEADLINE_SECONDS);

/**
 * Queues the operation's next task for the agent, in one transaction with the database writes that `before` makes. The workflow's fencing number
 * prevents two hubs from both queueing the next task of an operation.
 */
export async function startWork<T extends TaskType>(
  context: DecommissionContext,
  work: AgentWork<T>,
  before: (tx: Tx) => Promise<void> = async () => undefined,
): Promise<Wait<DecommissionState>> {
  const task = await inFencedTx(context, async (tx) => {
    await before(tx);
    return queueWork(tx, context, work);
  });
  return waitFor(context, work, task);
}

/**
 * Returns the operation's open task, or queues a new task. `queueWork` first cancels an open task that does not fit the operator's request, because
 * an agent gets one task at a time.
 */
export async function queueWork<T extends TaskType>(
  tx: Tx,
  context: DecommissionContext,
  work: AgentWork<T>,
): Promise<Task> {
  const queued = await currentTask(tx, operationOf(context), work);
  if (queued !== null && isUnfinished(queued.state)) {
    if (work.isAskedFor(context, queued)) return queued;
    await cancelTask(tx, queued.id);
  }
  const number = (await countTasksOf(tx, operationOf(context), work.type)) + 1;
  const { task } = await enqueueTask(tx, {
    nodeId: context.node.id,
    workflowId: context.workflowId,
    type: work.type,
    input: await work.input(context, tx),
    idempotencyKey: `${work.type}/${context.workflowId}/${number}`,
    deadlineSeconds: taskSeconds(context, work),
  });
  return task;
}

/** Cancels the operation's current task if the task is open, and returns the task with its state after the cancel. */
export async function cancelWork<T extends TaskType>(
  tx: Tx,
  operation: NodeOperation,
  work: WatchedWork<T>,
): Promise<Task | null> {
  const task = await currentTask(tx, operation, work);
  if (task === null || !isUnfinished(task.state)) return task;
  return (await cancelTask(tx, task.id)) ?? (await readTask(tx, task.id));
}
