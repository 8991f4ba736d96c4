import type { Evidence, Failure } from "../../../shared/failures.ts";
import { failure } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { TaskInput, TaskType } from "../../../shared/tasks/index.ts";
import { countTasksOf, newestTaskOf, readTask } from "../../db/queries/task-reads.ts";
import { cancelTask, enqueueTask, lapseTasks } from "../../db/queries/tasks.ts";
import { waitKey } from "../../db/queries/workflow-wakes.ts";
import type { Task } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { Failed, Wait } from "../engine/stage.ts";
import { inFencedTx } from "../services.ts";
import type { DecommissionContext, DecommissionState } from "./decommission-context.ts";

/** The agent's task that owns a coarse state: what a stage queues, looks at, and queues again when it was lost (state model 8). */
export interface AgentWork<T extends TaskType> {
  readonly type: T;
  /** The task that takes it back: once that is the newer one, there is nothing to look at any more. */
  readonly undoneBy: TaskType | null;
  input(context: DecommissionContext): TaskInput<T>;
  deadlineSeconds(context: DecommissionContext): number;
  /** Whether the task is what would be asked for now; one of before an operator's override is replaced. */
  isAskedFor(context: DecommissionContext, task: Task): boolean;
  /** What it means that the task ended without success. */
  failed(context: DecommissionContext, task: Task, evidence: Evidence): Failure;
  /** While the agent has it, in words, e.g. `The agent to end its sessions`. */
  waitsFor(context: DecommissionContext, task: Task): string;
}

const LOOK_AGAIN_SECONDS = 15;
const OPEN = ["queued", "offered", "running", "cancelling"] as const;
const isOpen = (task: Task): boolean => (OPEN as readonly string[]).includes(task.state);

/** The newest task of the operation, unless it was taken back since. */
export async function currentTask(
  db: Db | Tx,
  workflowId: WorkflowId,
  { type, undoneBy }: Pick<AgentWork<TaskType>, "type" | "undoneBy">,
): Promise<Task | null> {
  const task = await newestTaskOf(db, workflowId, undoneBy === null ? [type] : [type, undoneBy]);
  return task?.type === type ? task : null;
}

/** The task to look at: a delivery whose lease has lapsed is settled first, i.e. queued again or ended by the rules of its type. */
export async function settledTask<T extends TaskType>(
  context: DecommissionContext,
  work: AgentWork<T>,
): Promise<Task | null> {
  const task = await currentTask(context.services.db, context.workflowId, work);
  if (task === null || !isOpen(task) || task.leaseUntil === null || task.leaseUntil > context.now) return task;
  return inFencedTx(context, async (tx) => {
    await lapseTasks(tx, task.id);
    return readTask(tx, task.id);
  });
}

/** A task that ended before this entry of the stage, or whose end was told before, is history: the stage queues another. */
const isHistory = (context: DecommissionContext, task: Task): boolean =>
  task.id === context.state.failed_task_id || (task.finishedAt !== null && task.finishedAt < context.enteredAt);

/** What a task that is not over well means for the stage; null: another one is to be queued. */
export function judgeTask<T extends TaskType>(
  context: DecommissionContext,
  work: AgentWork<T>,
  task: Task | null,
): Wait<DecommissionState> | Failed<DecommissionState> | null {
  if (task === null || !work.isAskedFor(context, task)) return null;
  if (isOpen(task)) return unreachable(context, task) ?? waitFor(context, work, task);
  if (isHistory(context, task)) return null;
  if (task.state === "expired" && (task.attempts === 0 || context.session === null))
    return { kind: "failed", failure: agentUnreachable(context, task) };
  const evidence = evidenceOf(context, task);
  return { kind: "failed", failure: work.failed(context, task, evidence), patch: { failed_task_id: task.id } };
}

function waitFor<T extends TaskType>(
  context: DecommissionContext,
  work: AgentWork<T>,
  task: Task,
): Wait<DecommissionState> {
  return {
    kind: "wait",
    reason: reasonOf(context, work, task),
    seconds: LOOK_AGAIN_SECONDS,
    on: waitKey.task(task.id),
  };
}

function reasonOf<T extends TaskType>(context: DecommissionContext, work: AgentWork<T>, task: Task): string {
  if (task.state === "running") return work.waitsFor(context, task);
  if (task.state === "cancelling") return `The agent to end ${work.type}, which was cancelled`;
  if (context.session === null) return `The agent to connect and take ${work.type}; it is offline`;
  return `The agent to take ${work.type}`;
}

/** Nobody takes the task, and nobody has come for as long as the request allows. */
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
      ? `The agent of ${context.node.hostname} did not carry out ${task.type} before ${task.deadline.toISOString()}, and nothing was heard of it: ${task.errorMessage ?? "nobody knows why"}. ${context.session === null ? "Bring it back and resume" : "Resume"}.`
      : `The agent of ${context.node.hostname} did not come to take ${task.type} within ${context.input.agent_wait_seconds} s. Bring it back and resume.`,
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

/** Queues the next task, with what has to be written together with it. The fence keeps two hubs from queueing one each. */
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

/** The open task of the work, or a new one; one that is not what is asked for any more ends first, as an agent is given one at a time. */
export async function queueWork<T extends TaskType>(
  tx: Tx,
  context: DecommissionContext,
  work: AgentWork<T>,
): Promise<Task> {
  const queued = await currentTask(tx, context.workflowId, work);
  if (queued !== null && isOpen(queued)) {
    if (work.isAskedFor(context, queued)) return queued;
    await cancelTask(tx, queued.id);
  }
  const number = (await countTasksOf(tx, context.workflowId, work.type)) + 1;
  const { task } = await enqueueTask(tx, {
    nodeId: context.node.id,
    workflowId: context.workflowId,
    type: work.type,
    input: work.input(context),
    idempotencyKey: `${work.type}/${context.workflowId}/${number}`,
    deadlineSeconds: work.deadlineSeconds(context),
  });
  return task;
}

/** Ends what is still open of the work. Returns the task as it is then. */
export async function cancelWork<T extends TaskType>(
  tx: Tx,
  workflowId: WorkflowId,
  work: AgentWork<T>,
): Promise<Task | null> {
  const task = await currentTask(tx, workflowId, work);
  if (task === null || !isOpen(task)) return task;
  return (await cancelTask(tx, task.id)) ?? (await readTask(tx, task.id));
}
