import type { NodeId, TaskId, WorkflowId } from "../../../shared/ids.ts";
import type { TaskType } from "../../../shared/tasks/index.ts";
import { and, desc, eq, inArray, sql } from "../orm.ts";
import { type Task, tasks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { HELD, type JournalledDelivery } from "./tasks.ts";

export async function readTask(db: Db | Tx, id: TaskId): Promise<Task | null> {
  const [task] = await db.select().from(tasks).where(eq(tasks.id, id));
  return task ?? null;
}

/** Returns the cancelled tasks of the given nodes whose agents have not yet confirmed the cancellation. */
export async function cancellingTasks(db: Db, nodeIds: readonly NodeId[]): Promise<Task[]> {
  if (nodeIds.length === 0) return [];
  return db
    .select()
    .from(tasks)
    .where(and(inArray(tasks.nodeId, [...nodeIds]), eq(tasks.state, "cancelling")));
}

/** Returns the deliveries of cancelled tasks on which the agent still works according to its journal. */
export async function cancelledDeliveries(
  db: Db,
  nodeId: NodeId,
  journal: readonly JournalledDelivery[],
): Promise<{ taskId: TaskId; epoch: number }[]> {
  const held = journal.filter(({ state }) => state === "received" || state === "started");
  if (held.length === 0) return [];
  const rows = await db
    .select({ taskId: tasks.id })
    .from(tasks)
    .where(
      and(
        eq(tasks.nodeId, nodeId),
        eq(tasks.state, "cancelled"),
        inArray(
          tasks.id,
          held.map((one) => one.task_id),
        ),
      ),
    );
  return held.flatMap(({ task_id, epoch }) =>
    rows.some(({ taskId }) => taskId === task_id) ? [{ taskId: task_id, epoch }] : [],
  );
}

/** All tasks of an operation belong to the operation's node, so PostgreSQL finds them by the index of tasks by node. */
export interface NodeOperation {
  readonly nodeId: NodeId;
  readonly workflowId: WorkflowId;
}

export const ofOperation = ({ nodeId, workflowId }: NodeOperation, types: readonly TaskType[]) =>
  and(eq(tasks.nodeId, nodeId), eq(tasks.workflowId, workflowId), inArray(tasks.type, [...types]));

export async function newestTaskOf(
  db: Db | Tx,
  operation: NodeOperation,
  types: readonly TaskType[],
): Promise<Task | null> {
  const [task] = await db
    .select()
    .from(tasks)
    .where(ofOperation(operation, types))
    .orderBy(desc(tasks.createdAt), desc(tasks.id))
    .limit(1);
  return task ?? null;
}

/** Counts the tasks of one type that the operation has queued; the count makes the idempotency key of the next task unique. */
export async function countTasksOf(tx: Tx, operation: NodeOperation, type: TaskType): Promise<number> {
  const [row] = await tx
    .select({ count: sql<number>`count(*)::int` })
    .from(tasks)
    .where(ofOperation(operation, [type]));
  return row?.count ?? 0;
}

export async function countOpenTasks(tx: Tx, nodeId: NodeId): Promise<number> {
  const [row] = await tx
    .select({ count: sql<number>`count(*)::int` })
    .from(tasks)
    .where(and(eq(tasks.nodeId, nodeId), inArray(tasks.state, ["queued", ...HELD])));
  return row?.count ?? 0;
}

export async function listTasks(db: Db, nodeId: NodeId, limit: number): Promise<Task[]> {
  return db
    .select()
    .from(tasks)
    .where(eq(tasks.nodeId, nodeId))
    .orderBy(sql`${tasks.createdAt} desc, ${tasks.id}`)
    .limit(limit);
}

export async function wasQueuedWithin(tx: Tx, nodeId: NodeId, keyBegins: string, seconds: number): Promise<boolean> {
  const [found] = await tx
    .select({ id: tasks.id })
    .from(tasks)
    .where(
      and(
        eq(tasks.nodeId, nodeId),
        sql`starts_with(${tasks.idempotencyKey}, ${keyBegins})`,
        sql`${tasks.createdAt} > now() - make_interval(secs => ${seconds})`,
      ),
    )
    .limit(1);
  return found !== undefined;
}

export async function hasTaskOf(db: Db | Tx, operation: NodeOperation, types: readonly TaskType[]): Promise<boolean> {
  return (await newestTaskOf(db, operation, types)) !== null;
}

export async function newestOfEachType(
  db: Db | Tx,
  operation: NodeOperation,
  types: readonly TaskType[],
): Promise<Task[]> {
  const rows = await db
    .selectDistinctOn([tasks.type])
    .from(tasks)
    .where(ofOperation(operation, types))
    .orderBy(tasks.type, desc(tasks.createdAt), desc(tasks.id));
  return rows.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
}
