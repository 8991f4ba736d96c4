import type { NodeId, TaskId, WorkflowId } from "../../shared/ids.ts";
import { TASKS, type TaskInput, type TaskType } from "../../shared/tasks/index.ts";
import { and, eq, inArray, type SQL, sql } from "../db/orm.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import { type Task, tasks } from "../db/schema/index.ts";
import type { Db, Tx } from "../db/tx.ts";

/** NOTIFY channel; its payload is the node's id. */
export const TASK_CHANNEL = "muster_tasks";

export interface NewTask<T extends TaskType> {
  readonly nodeId: NodeId;
  readonly workflowId?: WorkflowId;
  readonly type: T;
  /** Must hold no secret: it is stored. What a task needs of those is filled in when it is offered. */
  readonly input: TaskInput<T>;
  readonly idempotencyKey: string;
  /** Seconds from now after which the task is `expired`. */
  readonly deadlineSeconds: number;
  readonly maxAttempts?: number;
}

/** Queues a task; the same key of the same node gives the task that is there, so that a caller may ask again. */
export async function enqueueTask<T extends TaskType>(
  tx: Tx,
  task: NewTask<T>,
): Promise<{ task: Task; created: boolean }> {
  const input = TASKS[task.type].input.parse(task.input);
  const [created] = await tx
    .insert(tasks)
    .values({
      nodeId: task.nodeId,
      workflowId: task.workflowId ?? null,
      type: task.type,
      input,
      idempotencyKey: task.idempotencyKey,
      deadline: sql`now() + make_interval(secs => ${task.deadlineSeconds})`,
      ...(task.maxAttempts === undefined ? {} : { maxAttempts: task.maxAttempts }),
    })
    .onConflictDoNothing({ target: [tasks.nodeId, tasks.idempotencyKey] })
    .returning();
  if (created !== undefined) {
    await tx.execute(sql`select pg_notify(${TASK_CHANNEL}, ${task.nodeId})`);
    return { task: created, created: true };
  }
  const [existing] = await tx
    .select()
    .from(tasks)
    .where(and(eq(tasks.nodeId, task.nodeId), eq(tasks.idempotencyKey, task.idempotencyKey)));
  if (existing === undefined) throw new Error(`task ${task.idempotencyKey} conflicts with one that cannot be read`);
  return { task: existing, created: false };
}

export async function readTask(db: Db | Tx, id: TaskId): Promise<Task | null> {
  const [task] = await db.select().from(tasks).where(eq(tasks.id, id));
  return task ?? null;
}

/** A queued task is cancelled at once; one that an agent has is `cancelling` until the agent says how it went. Null: it was over already. */
export async function cancelTask(tx: Tx, id: TaskId): Promise<Task | null> {
  const [task] = await cancelTasks(tx, eq(tasks.id, id));
  return task ?? null;
}

/** The same for every task of the type that the node has, whoever queued it. */
export async function cancelTasksOf(tx: Tx, nodeId: NodeId, type: TaskType): Promise<void> {
  await cancelTasks(tx, and(eq(tasks.nodeId, nodeId), eq(tasks.type, type)));
}

/** The same for whatever the node has. */
export async function cancelAllTasks(tx: Tx, nodeId: NodeId): Promise<void> {
  await cancelTasks(tx, eq(tasks.nodeId, nodeId));
}

async function cancelTasks(tx: Tx, which: SQL | undefined): Promise<Task[]> {
  const cancelled = await tx
    .update(tasks)
    .set({
      state: sql`case when ${tasks.state} = 'queued' then 'cancelled' else 'cancelling' end`,
      finishedAt: sql`case when ${tasks.state} = 'queued' then now() end`,
      errorCode: sql`case when ${tasks.state} = 'queued' then 'cancelled' end`,
      updatedAt: sql`now()`,
    })
    .where(and(which, inArray(tasks.state, ["queued", "offered", "running"])))
    .returning();
  for (const { nodeId } of cancelled) await tx.execute(sql`select pg_notify(${TASK_CHANNEL}, ${nodeId})`);
  await wakeWorkflows(
    tx,
    cancelled.filter(({ state }) => state === "cancelled").map(({ id }) => waitKey.task(id)),
  );
  return cancelled;
}
