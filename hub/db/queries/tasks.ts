import { and, eq, inArray, sql } from "drizzle-orm";
import type { NodeId, TaskId } from "../../../shared/ids.ts";
import { TASKS } from "../../../shared/tasks/index.ts";
import { type Task, tasks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

const specs = Object.values(TASKS);
/** Lease and kind of each task type as rows, for the statements below. */
const catalogue = sql`unnest(${sql.param(specs.map((spec) => spec.type))}::text[], ${sql.param(specs.map((spec) => spec.leaseSeconds))}::int[], ${sql.param(specs.map((spec) => spec.destructive))}::boolean[]) as c(type, lease_seconds, destructive)`;
const leaseOf = (type: string): number => specs.find((spec) => spec.type === type)?.leaseSeconds ?? 60;
const HELD = ["offered", "running", "cancelling"] as const;

/**
 * Takes the next task of each of these nodes: the oldest queued one, when the node has none in hand. Raises its epoch, which makes every
 * earlier delivery void.
 */
export async function claimTasks(db: Db, nodeIds: readonly NodeId[]): Promise<Task[]> {
  if (nodeIds.length === 0) return [];
  return db
    .update(tasks)
    .set({
      state: "offered",
      epoch: sql`${tasks.epoch} + 1`,
      attempts: sql`${tasks.attempts} + 1`,
      leaseUntil: sql`now() + make_interval(secs => (select c.lease_seconds from ${catalogue} where c.type = ${tasks.type}))`,
      updatedAt: sql`now()`,
    })
    .where(
      sql`${tasks.id} = any(array(
        select t.id from tasks t
        where t.node_id = any(${sql.param([...nodeIds])}::uuid[]) and t.state = 'queued' and t.not_before <= now() and t.deadline > now()
          and t.id = (select q.id from tasks q where q.node_id = t.node_id and q.state = 'queued' and q.not_before <= now() and q.deadline > now() order by q.created_at, q.id limit 1)
          and not exists (select 1 from tasks h where h.node_id = t.node_id and h.state in ('offered', 'running', 'cancelling'))
        for update skip locked))`,
    )
    .returning();
}

/** Tasks whose cancellation an agent has still to be told. */
export async function cancellingTasks(db: Db, nodeIds: readonly NodeId[]): Promise<Task[]> {
  if (nodeIds.length === 0) return [];
  return db
    .select()
    .from(tasks)
    .where(and(inArray(tasks.nodeId, [...nodeIds]), eq(tasks.state, "cancelling")));
}

/** The agent has it: the lease starts anew. False for an epoch that is over. */
export async function acknowledgeTask(
  db: Db,
  id: TaskId,
  nodeId: NodeId,
  epoch: number,
  type: string,
): Promise<boolean> {
  const rows = await db
    .update(tasks)
    .set({
      state: sql`case when ${tasks.state} = 'offered' then 'running' else ${tasks.state} end`,
      startedAt: sql`coalesce(${tasks.startedAt}, now())`,
      leaseUntil: sql`now() + make_interval(secs => ${leaseOf(type)})`,
      updatedAt: sql`now()`,
    })
    .where(and(eq(tasks.id, id), eq(tasks.nodeId, nodeId), eq(tasks.epoch, epoch), inArray(tasks.state, [...HELD])))
    .returning({ id: tasks.id });
  return rows.length > 0;
}

/** Progress renews the lease; an older or repeated `seq` changes nothing. */
export async function recordProgress(
  db: Db,
  id: TaskId,
  nodeId: NodeId,
  epoch: number,
  type: string,
  seq: number,
  progress: unknown,
): Promise<void> {
  await db
    .update(tasks)
    .set({
      progress,
      progressSeq: seq,
      leaseUntil: sql`now() + make_interval(secs => ${leaseOf(type)})`,
      updatedAt: sql`now()`,
    })
    .where(
      and(
        eq(tasks.id, id),
        eq(tasks.nodeId, nodeId),
        eq(tasks.epoch, epoch),
        inArray(tasks.state, ["running", "cancelling"]),
        sql`coalesce(${tasks.progressSeq}, -1) < ${seq}`,
      ),
    );
}

export type TaskEnding =
  | { readonly state: "succeeded"; readonly result: unknown }
  | { readonly state: "failed" | "cancelled"; readonly errorCode: string; readonly errorMessage: string }
  | {
      readonly state: "queued";
      readonly errorCode: string;
      readonly errorMessage: string;
      readonly delaySeconds: number;
    };

/**
 * Ends one delivery. A task that would be queued again fails instead when its attempts or its time are used up. Null when the delivery was
 * over already: a late or repeated result changes nothing.
 */
export async function endDelivery(
  tx: Db | Tx,
  id: TaskId,
  nodeId: NodeId,
  epoch: number,
  ending: TaskEnding,
): Promise<Task | null> {
  const retry = ending.state === "queued";
  const spent = sql`(${tasks.attempts} >= ${tasks.maxAttempts} or ${tasks.deadline} <= now())`;
  const final = retry
    ? sql`case when ${spent} then 'failed' when ${tasks.state} = 'cancelling' then 'cancelled' else 'queued' end`
    : sql`${ending.state}`;
  const [task] = await tx
    .update(tasks)
    .set({
      state: final,
      result: ending.state === "succeeded" ? ending.result : null,
      errorCode: ending.state === "succeeded" ? null : ending.errorCode,
      errorMessage: ending.state === "succeeded" ? null : ending.errorMessage,
      leaseUntil: null,
      ...(retry
        ? {
            notBefore: sql`now() + make_interval(secs => ${ending.delaySeconds})`,
            finishedAt: sql`case when ${spent} then now() end`,
          }
        : { finishedAt: sql`now()` }),
      updatedAt: sql`now()`,
    })
    .where(and(eq(tasks.id, id), eq(tasks.nodeId, nodeId), eq(tasks.epoch, epoch), inArray(tasks.state, [...HELD])))
    .returning();
  return task ?? null;
}

/**
 * Deliveries whose lease has lapsed, and queued tasks whose time is up. A destructive task that may have been started is never queued again
 * (architecture 6). Any hub may run this; each row is moved once.
 */
export async function lapseTasks(tx: Tx): Promise<Task[]> {
  const destructive = sql`(select c.destructive from ${catalogue} where c.type = ${tasks.type})`;
  return tx
    .update(tasks)
    .set({
      state: sql`case
        when ${tasks.state} = 'queued' or ${tasks.deadline} <= now() then 'expired'
        when ${tasks.state} = 'cancelling' then 'cancelled'
        when ${tasks.attempts} >= ${tasks.maxAttempts} or (${tasks.state} = 'running' and ${destructive}) then 'failed'
        else 'queued' end`,
      errorCode: sql`case when ${tasks.state} = 'queued' then coalesce(${tasks.errorCode}, 'deadline_passed') when ${tasks.deadline} <= now() then 'deadline_passed' when ${tasks.state} = 'cancelling' then 'cancelled' else 'lease_lapsed' end`,
      errorMessage: sql`case when ${tasks.state} = 'queued' then coalesce(${tasks.errorMessage}, 'No agent took the task in time') else 'The agent was not heard of in time' end`,
      leaseUntil: null,
      finishedAt: sql`case when ${tasks.state} in ('offered', 'running') and ${tasks.deadline} > now() and ${tasks.attempts} < ${tasks.maxAttempts} and not (${tasks.state} = 'running' and ${destructive}) then null else now() end`,
      updatedAt: sql`now()`,
    })
    .where(
      sql`(${tasks.state} in ('offered', 'running', 'cancelling') and ${tasks.leaseUntil} < now()) or (${tasks.state} = 'queued' and ${tasks.deadline} <= now())`,
    )
    .returning();
}

export async function listTasks(db: Db, nodeId: NodeId, limit: number): Promise<Task[]> {
  return db
    .select()
    .from(tasks)
    .where(eq(tasks.nodeId, nodeId))
    .orderBy(sql`${tasks.createdAt} desc, ${tasks.id}`)
    .limit(limit);
}
