import type { NodeId, TaskId, WorkflowId } from "../../../shared/ids.ts";
import type { JournalState } from "../../../shared/protocol/frames.ts";
import { TASKS, type TaskInput, type TaskType } from "../../../shared/tasks/index.ts";
import { and, eq, inArray, type SQL, sql } from "../orm.ts";
import { type Task, tasks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { inHand, isDestructive, laneIn, leaseFromNow, mustNotRepeat } from "./task-catalogue.ts";
import { waitKey, wakeWorkflows } from "./workflow-wakes.ts";

/** The payload of a notification on the channel `muster_tasks` is the id of the task's node. */
export const TASK_CHANNEL = "muster_tasks";

export interface NewTask<T extends TaskType> {
  readonly nodeId: NodeId;
  readonly workflowId?: WorkflowId;
  readonly type: T;
  /**
   * A task's input must not contain a secret, because the database stores the input. The hub adds the secrets of a task when the hub offers the task
   * to an agent.
   */
  readonly input: TaskInput<T>;
  readonly idempotencyKey: string;
  /** The seconds from the creation of a task to its deadline, after which an unfinished task is `expired`. */
  readonly deadlineSeconds: number;
  readonly maxAttempts?: number;
}

/** If the node already has a task with the same idempotency key, `enqueueTask` returns that task, so a caller can safely repeat the call. */
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

/**
 * A task that is still queued is cancelled at once, and a task that an agent holds is `cancelling` until the agent reports its end. `cancelTask`
 * returns null if the task has ended or is already being cancelled.
 */
export async function cancelTask(tx: Tx, id: TaskId): Promise<Task | null> {
  const [task] = await cancelTasks(tx, eq(tasks.id, id));
  return task ?? null;
}

export async function cancelTasksOf(tx: Tx, nodeId: NodeId, type: TaskType): Promise<void> {
  await cancelTasks(tx, and(eq(tasks.nodeId, nodeId), eq(tasks.type, type)));
}

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

/** Cancels the tasks that no agent has and that would destroy data or give a tenant an account, for all hosts. */
export async function cancelQueuedWork(tx: Tx): Promise<void> {
  await cancelTasks(tx, and(eq(tasks.state, "queued"), mustNotRepeat));
}

/**
 * True for a task with `plan: true`, which only reports what it would do. The success of a task with `plan: true` proves nothing about the state of
 * the host, for example not that the host is drained.
 */
export const isPlan = (alias = "tasks"): SQL => sql`${sql.identifier(alias)}.input @> '{"plan": true}'`;

export const HELD = ["offered", "running", "cancelling"] as const;

/** The new values of a task's row when the agent reports on its delivery of the task. */
const taken = {
  state: sql`case when ${tasks.state} = 'offered' then 'running' else ${tasks.state} end`,
  startedAt: sql`coalesce(${tasks.startedAt}, now())`,
  leaseUntil: leaseFromNow,
  updatedAt: sql`now()`,
};

/**
 * Takes the oldest queued task for each given node and lane (`work`, or `look` for short tasks that only read), unless the agent already holds a task
 * of the lane. The epoch of a claimed task rises, which makes every earlier delivery of the task invalid.
 */
export async function claimTasks(db: Db, nodeIds: readonly NodeId[]): Promise<Task[]> {
  if (nodeIds.length === 0) return [];
  return db
    .update(tasks)
    .set({
      state: "offered",
      epoch: sql`${tasks.epoch} + 1`,
      attempts: sql`${tasks.attempts} + 1`,
      leaseUntil: leaseFromNow,
      updatedAt: sql`now()`,
    })
    .where(
      sql`${tasks.id} = any(array(
        select t.id from tasks t
        where t.node_id = any(${sql.param([...nodeIds])}::uuid[]) and t.state = 'queued' and t.not_before <= now() and t.deadline > now()
          and t.id = (select q.id from tasks q where q.node_id = t.node_id and q.state = 'queued' and q.not_before <= now() and q.deadline > now()
            and ${laneIn("q")} = ${laneIn("t")} order by q.created_at, q.id limit 1)
          and not exists (select 1 from tasks h where ${inHand("t")})
        for update skip locked))`,
    )
    .returning();
}

/**
 * Records that the agent has received the task, and renews the lease of the task. An acknowledgement of a delivery with an older epoch changes
 * nothing.
 */
export async function acknowledgeTask(db: Db, id: TaskId, nodeId: NodeId, epoch: number): Promise<void> {
  await db
    .update(tasks)
    .set(taken)
    .where(and(eq(tasks.id, id), eq(tasks.nodeId, nodeId), eq(tasks.epoch, epoch), inArray(tasks.state, [...HELD])));
}

/** A progress report whose `seq` is not higher than the stored `progressSeq` changes nothing, and returns false. */
export async function recordProgress(
  db: Db | Tx,
  id: TaskId,
  nodeId: NodeId,
  epoch: number,
  seq: number,
  progress: unknown,
): Promise<boolean> {
  const rows = await db
    .update(tasks)
    .set({ ...taken, progress, progressSeq: seq })
    .where(
      and(
        eq(tasks.id, id),
        eq(tasks.nodeId, nodeId),
        eq(tasks.epoch, epoch),
        inArray(tasks.state, [...HELD]),
        sql`coalesce(${tasks.progressSeq}, -1) < ${seq}`,
      ),
    )
    .returning({ id: tasks.id });
  return rows.length > 0;
}

export type TaskEnding =
  | {
      readonly state: "succeeded";
      readonly result: unknown;
      /**
       * If `unlessCancelling` is true, a cancel that was requested before the agent's result arrived takes precedence over the task's success
       * (`effectOnceAccepted`).
       */
      readonly unlessCancelling?: boolean;
    }
  | { readonly state: "failed" | "cancelled"; readonly errorCode: string; readonly errorMessage: string }
  | {
      readonly state: "queued";
      readonly errorCode: string;
      readonly errorMessage: string;
      readonly delaySeconds: number;
      /** A delivery that never reached the agent does not count as an attempt, so only the task's deadline limits the deliveries. */
      readonly unoffered?: boolean;
    };

/**
 * A task that the hub would queue for another delivery fails if it has no attempts left or its deadline has passed. `endDelivery` returns null if the
 * task's delivery had already ended, so a late or repeated result changes nothing.
 */
export async function endDelivery(
  tx: Db | Tx,
  id: TaskId,
  nodeId: NodeId,
  epoch: number,
  ending: TaskEnding,
): Promise<Task | null> {
  const retry = ending.state === "queued";
  const unoffered = ending.state === "queued" && ending.unoffered === true;
  const spent = unoffered
    ? sql`${tasks.deadline} <= now()`
    : sql`(${tasks.attempts} >= ${tasks.maxAttempts} or ${tasks.deadline} <= now())`;
  const final = retry
    ? sql`case when ${tasks.state} = 'cancelling' then 'cancelled' when ${spent} then 'failed' else 'queued' end`
    : ending.state === "succeeded" && ending.unlessCancelling === true
      ? sql`case when ${tasks.state} = 'cancelling' then 'cancelled' else 'succeeded' end`
      : sql`${ending.state}`;
  const [task] = await tx
    .update(tasks)
    .set({
      state: final,
      result: ending.state === "succeeded" ? ending.result : null,
      errorCode:
        ending.state === "succeeded" ? sql`case when ${final} = 'cancelled' then 'cancelled' end` : ending.errorCode,
      errorMessage: ending.state === "succeeded" ? null : ending.errorMessage,
      leaseUntil: null,
      ...(retry
        ? {
            ...(unoffered ? { attempts: sql`${tasks.attempts} - 1` } : {}),
            notBefore: sql`now() + make_interval(secs => ${ending.delaySeconds})`,
            finishedAt: sql`case when ${spent} or ${tasks.state} = 'cancelling' then now() end`,
          }
        : { finishedAt: sql`now()` }),
      updatedAt: sql`now()`,
    })
    .where(and(eq(tasks.id, id), eq(tasks.nodeId, nodeId), eq(tasks.epoch, epoch), inArray(tasks.state, [...HELD])))
    .returning();
  return task ?? null;
}

/** SQL for the reason why no agent took a queued task before the task's deadline. */
const whyNotTaken = sql`coalesce(
  (select 'The agent was still working on ' || h.type || ', and runs such tasks one after the other' from tasks h where ${inHand("tasks")} limit 1),
  (select 'The agent is connected, but did not get the task before its deadline' from agent_sessions s where s.node_id = tasks.node_id and s.state = 'open'),
  'No agent of the node was connected at the deadline of the task')`;

/**
 * Ends task deliveries whose lease has expired, and queued tasks whose deadline has passed. The hub never queues a destructive task for another
 * delivery if an agent may have started the task (architecture 11). Several hubs may run `lapseTasks` at the same time, but only one of them changes
 * the row of a given task.
 */
export async function lapseTasks(tx: Tx, only?: TaskId): Promise<Task[]> {
  return tx
    .update(tasks)
    .set({
      state: sql`case
        when ${tasks.state} = 'queued' or ${tasks.deadline} <= now() then 'expired'
        when ${tasks.state} = 'cancelling' then 'cancelled'
        when ${tasks.attempts} >= ${tasks.maxAttempts} or (${tasks.state} = 'running' and ${isDestructive}) then 'failed'
        else 'queued' end`,
      errorCode: sql`case when ${tasks.state} = 'queued' then coalesce(${tasks.errorCode}, 'deadline_passed') when ${tasks.deadline} <= now() then 'deadline_passed' when ${tasks.state} = 'cancelling' then 'cancelled' else 'lease_lapsed' end`,
      errorMessage: sql`case when ${tasks.state} = 'queued' then coalesce(${tasks.errorMessage}, ${whyNotTaken}) else 'The agent did not report on the task before its lease or deadline ended' end`,
      leaseUntil: null,
      finishedAt: sql`case when ${tasks.state} in ('offered', 'running') and ${tasks.deadline} > now() and ${tasks.attempts} < ${tasks.maxAttempts} and not (${tasks.state} = 'running' and ${isDestructive}) then null else now() end`,
      updatedAt: sql`now()`,
    })
    .where(
      and(
        sql`((${tasks.state} in ('offered', 'running', 'cancelling') and ${tasks.leaseUntil} < now()) or (${tasks.state} = 'queued' and ${tasks.deadline} <= now()))`,
        only === undefined ? undefined : eq(tasks.id, only),
      ),
    )
    .returning();
}

export interface JournalledDelivery {
  readonly task_id: TaskId;
  readonly epoch: number;
  readonly state: JournalState;
}

/** After a restore of the database, agents get this time to report what they did about their tasks, whose stored leases ended long ago. */
const AFTER_RESTORE = sql`interval '1 hour'`;

/**
 * Keeps the hub from a second delivery of tasks that agents held when the database's backup was taken. From an agent's journal of task deliveries,
 * the hub learns what the agent has done since the database's backup. A task that must not be repeated fails if no agent's journal contains it,
 * because `extendHeldTasks` counts an offered task as begun and leaves it no attempt.
 */
export async function extendHeldTasks(tx: Tx): Promise<void> {
  await tx
    .update(tasks)
    .set({ leaseUntil: sql`now() + ${AFTER_RESTORE}` })
    .where(inArray(tasks.state, [...HELD]));
  await tx
    .update(tasks)
    .set({
      state: sql`case when ${tasks.state} = 'offered' then 'running' else ${tasks.state} end`,
      attempts: sql`greatest(${tasks.attempts}, ${tasks.maxAttempts})`,
      startedAt: sql`coalesce(${tasks.startedAt}, now())`,
    })
    .where(and(inArray(tasks.state, [...HELD]), mustNotRepeat));
}

/**
 * Corrects the tasks of which the agent's journal has a later delivery than the database, because the database was restored or lost its last commits.
 * A task whose result the agent has not yet reported gets the epoch of the delivery in the agent's journal, so that the hub accepts the result. A
 * task whose result the agent's journal shows as reported fails, because the agent does not keep the result, and because a second delivery would do
 * the work twice.
 */
async function catchUp(tx: Tx, nodeId: NodeId, journal: readonly JournalledDelivery[]): Promise<Task[]> {
  const of = (wanted: readonly JournalledDelivery[]) =>
    sql`unnest(${sql.param(wanted.map((one) => one.task_id))}::uuid[], ${sql.param(wanted.map((one) => one.epoch))}::int[]) as j(id, epoch)`;
  const reported = journal.filter(({ state }) => state === "reported");
  const inHandNow = journal.filter(({ state }) => state !== "reported");
  const later = (wanted: readonly JournalledDelivery[]) =>
    sql`(select max(j.epoch) from ${of(wanted)} where j.id = ${tasks.id})`;
  const isOpen = inArray(tasks.state, ["queued", ...HELD]);
  await tx
    .update(tasks)
    .set({
      ...taken,
      state: sql`case when ${tasks.state} = 'cancelling' then 'cancelling' else 'running' end`,
      epoch: later(inHandNow),
      attempts: sql`${tasks.attempts} + ${later(inHandNow)} - ${tasks.epoch}`,
    })
    .where(and(eq(tasks.nodeId, nodeId), isOpen, sql`${later(inHandNow)} > ${tasks.epoch}`));
  return (
    tx
      .update(tasks)
      .set({
        state: "failed",
        epoch: later(reported),
        errorCode: "result_lost",
        errorMessage:
          "The agent carried the task out and reported its result, and the database lost the result, e.g. by a restore of a backup. Look at the host, then repeat the operation",
        leaseUntil: null,
        finishedAt: sql`now()`,
        updatedAt: sql`now()`,
      })
      // A task that waits for another delivery still has the epoch of its failed delivery, so only a higher epoch in the journal shows a lost result.
      .where(
        and(
          eq(tasks.nodeId, nodeId),
          isOpen,
          sql`${later(reported)} >= ${tasks.epoch} + (case when ${tasks.state} = 'queued' then 1 else 0 end)`,
        ),
      )
      .returning()
  );
}

/**
 * Compares the node's tasks with the journal of deliveries that a connecting agent sends, and returns the changed tasks. A task delivery in the
 * agent's journal has reached the agent, even if the acknowledgement was lost. A delivery that is missing in the agent's journal never arrived, or
 * the host lost its journal. If the agent's journal lacks a task that is not destructive, the hub queues the task for another delivery at once. A
 * delivery that neither the agent's journal nor an acknowledgement proves does not count as an attempt of the task. If the agent acknowledged a
 * destructive task that the agent's journal lacks, the task fails with an unknown result. A destructive task without acknowledgement waits for the
 * end of its lease, because the agent may just be writing its journal.
 */
export async function reconcileDeliveries(
  tx: Tx,
  nodeId: NodeId,
  journal: readonly JournalledDelivery[],
): Promise<Task[]> {
  const known = sql`(${tasks.id}, ${tasks.epoch}) in (select * from unnest(${sql.param(journal.map((one) => one.task_id))}::uuid[], ${sql.param(journal.map((one) => one.epoch))}::int[]))`;
  const caughtUp = await catchUp(tx, nodeId, journal);
  await tx
    .update(tasks)
    .set(taken)
    .where(and(eq(tasks.nodeId, nodeId), eq(tasks.state, "offered"), known));
  const lost = sql`case
    when ${tasks.state} = 'cancelling' then 'cancelled' when ${tasks.state} = 'offered' then 'queued'
    when ${isDestructive} or ${tasks.attempts} >= ${tasks.maxAttempts} then 'failed' else 'queued' end`;
  const moved = await tx
    .update(tasks)
    .set({
      state: lost,
      attempts: sql`case when ${tasks.state} = 'offered' then greatest(${tasks.attempts} - 1, 0) else ${tasks.attempts} end`,
      errorCode: sql`case ${tasks.state} when 'offered' then ${tasks.errorCode} when 'cancelling' then 'cancelled' else 'interrupted' end`,
      errorMessage: sql`case ${tasks.state} when 'offered' then ${tasks.errorMessage} else 'The journal of the agent no longer contains this delivery' end`,
      leaseUntil: null,
      finishedAt: sql`case when ${lost} = 'queued' then null else now() end`,
      updatedAt: sql`now()`,
    })
    .where(
      and(
        eq(tasks.nodeId, nodeId),
        inArray(tasks.state, [...HELD]),
        sql`not (${tasks.state} <> 'running' and ${isDestructive})`,
        sql`not ${known}`,
      ),
    )
    .returning();
  return [...caughtUp, ...moved];
}
