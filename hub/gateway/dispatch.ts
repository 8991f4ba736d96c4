import { createHash } from "node:crypto";
import type { NodeId } from "../../shared/ids.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import type { Log } from "../../shared/log.ts";
import type { AgentFrame, HubFrame, WireReply } from "../../shared/protocol/frames.ts";
import { TASKS, type TaskInput, type TaskType } from "../../shared/tasks/index.ts";
import { asksForPlan } from "../../shared/tasks/plan.ts";
import { isTaskType, TASK_TYPES } from "../../shared/tasks/task-types.ts";
import { cancelledDeliveries, cancellingTasks, readTask } from "../db/queries/task-reads.ts";
import {
  acknowledgeTask,
  claimTasks,
  endDelivery,
  type JournalledDelivery,
  lapseTasks,
  reconcileDeliveries,
  recordProgress,
  type TaskEnding,
} from "../db/queries/tasks.ts";
import { tellTaskProgress, waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { Task } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import { taskDeliveriesEnded } from "../metrics/counted/tasks-ended.ts";
import { endingOf } from "./reply.ts";
import type { Session, Sessions } from "./session.ts";
import type { TaskSigner } from "./task-signer.ts";

/**
 * Adds secret inputs, for example a token, to a task when the hub offers the task, because the task's row must not hold secrets. A resolver of secret
 * inputs throws if the secret that it adds is not available now.
 */
export type InputResolvers = { readonly [T in TaskType]?: (input: TaskInput<T>, task: Task) => Promise<TaskInput<T>> };

export interface DispatchDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly sessions: Sessions;
  readonly signer: TaskSigner;
  readonly resolveInput: InputResolvers;
  /**
   * The hub calls `onTaskEnded` after tasks have ended or returned to the queue. The call of `onTaskEnded` makes each part of the hub that waits for
   * a task read the task's state at once.
   */
  readonly onTaskEnded?: (() => void) | undefined;
  readonly log: Log;
}

/** The number of seconds after which the hub repeats the offer of a task whose input was not available. */
const INPUT_RETRY_SECONDS = 5;

type TaskFrame = Extract<AgentFrame, { task_id: unknown }>;

/**
 * Offers queued tasks to the agents of this hub and processes the agents' replies. The database is the queue of tasks; the dispatcher keeps no state.
 */
export class Dispatcher {
  readonly #deps: DispatchDependencies;
  constructor(deps: DispatchDependencies) {
    this.#deps = deps;
  }

  /**
   * Offers the queued tasks of the given nodes to their agents. The hub calls `offer` after PostgreSQL's NOTIFY, after an agent's welcome, after a
   * task's result, and every second for all nodes.
   */
  async offer(nodeIds: readonly NodeId[]): Promise<void> {
    const connected = nodeIds.filter((nodeId) => this.#deps.sessions.get(nodeId)?.settled === true);
    const claimed = await claimTasks(this.#deps.db, connected);
    await Promise.all(claimed.map((task) => this.#offerOne(task)));
    for (const task of await cancellingTasks(this.#deps.db, connected))
      this.#send(task.nodeId, { type: "task.cancel", task_id: task.id, epoch: task.epoch });
  }

  /**
   * Compares a node's tasks with the journal in which the node's agent notes received tasks. `welcomed` corrects the states of the node's tasks, and
   * then offers the queued tasks.
   */
  async welcomed(session: Session, journal: readonly JournalledDelivery[]): Promise<void> {
    const { nodeId } = session;
    const settled = await this.#deps.inTx(async (tx) => {
      const moved = await reconcileDeliveries(tx, nodeId, journal);
      await wakeWorkflows(
        tx,
        moved.map((task) => waitKey.task(task.id)),
      );
      return moved;
    });
    countEnded(settled);
    session.settled = true;
    // If a task was cancelled while its agent had no connection, the agent would work on the task until the task's deadline. The message
    // `task.cancel` stops the agent's work on a cancelled task.
    for (const { taskId, epoch } of await cancelledDeliveries(this.#deps.db, nodeId, journal))
      session.channel.send({ type: "task.cancel", task_id: taskId, epoch });
    for (const { id, type, state, epoch } of settled)
      this.#deps.log.info("delivery unknown to its agent", { task_id: id, node_id: nodeId, type, state, epoch });
    await this.offer([nodeId]);
  }

  /** Ends deliveries of tasks that agents did not answer, and tasks whose deadline has passed. */
  async lapse(): Promise<void> {
    const lapsed = await this.#deps.inTx(async (tx) => {
      const moved = await lapseTasks(tx);
      await wakeWorkflows(
        tx,
        moved.map((task) => waitKey.task(task.id)),
      );
      return moved;
    });
    countEnded(lapsed);
    for (const task of lapsed)
      this.#deps.log.warn("task delivery lapsed", {
        task_id: task.id,
        node_id: task.nodeId,
        type: task.type,
        state: task.state,
        epoch: task.epoch,
      });
    if (lapsed.length > 0) this.#deps.onTaskEnded?.();
  }

  async take(session: Session, frame: TaskFrame): Promise<void> {
    const { db } = this.#deps;
    const task = await readTask(db, frame.task_id);
    if (task === null || task.nodeId !== session.nodeId) {
      // The hub ignores an agent's reply to a task that never belonged to the agent's node. If the agent sends the result of a task that never
      // belonged to its node, the hub acknowledges the result, so that the agent deletes it.
      if (frame.type === "task.result")
        session.channel.send({ type: "task.result_ack", task_id: frame.task_id, epoch: frame.epoch });
      return;
    }
    switch (frame.type) {
      case "task.ack":
        await acknowledgeTask(db, task.id, session.nodeId, frame.epoch);
        return;
      case "task.progress": {
        const parsed = isTaskType(task.type) ? TASKS[task.type].progress.safeParse(frame.progress) : null;
        if (!parsed?.success) return;
        const { epoch, seq } = frame;
        await this.#deps.inTx(async (tx) => {
          if (await recordProgress(tx, task.id, session.nodeId, epoch, seq, parsed.data))
            await tellTaskProgress(tx, task.id);
        });
        return;
      }
      case "task.result":
        session.channel.send(await this.#takeResult(task, frame.epoch, frame.reply));
        break;
      case "task.rejected":
        await this.#end(task, frame.epoch, {
          state: "failed",
          errorCode: `order_rejected_${frame.reason}`,
          errorMessage: frame.message,
        });
        break;
      case "task.cancelled":
        await this.#end(task, frame.epoch, {
          state: "cancelled",
          errorCode: "cancelled",
          errorMessage: "Cancelled before it ended",
        });
        break;
      case "task.not_cancellable":
        this.#deps.log.info("task can no longer be cancelled", { task_id: task.id, reason: frame.message });
        return;
    }
    await this.offer([session.nodeId]);
  }

  /**
   * Acknowledges the result of a task that an agent sent. If a task takes effect only after the hub has accepted its result, the acknowledgement says
   * whether the hub accepted the result.
   */
  async #takeResult(task: Task, epoch: number, reply: WireReply): Promise<HubFrame> {
    const ending = endingOf(task.type, task.attempts, reply);
    const ack = { type: "task.result_ack", task_id: task.id, epoch } as const;
    const hasEffect =
      isTaskType(task.type) && TASK_TYPES[task.type].effectOnceAccepted === true && !asksForPlan(task.input);
    if (!hasEffect || ending.state !== "succeeded") {
      await this.#end(task, epoch, ending);
      return ack;
    }
    // If the hub's acknowledgement of a result was lost, the agent repeats the result. If an agent reports the success of one delivery of a task
    // twice, the hub accepts the second report as well.
    const ended = (await this.#end(task, epoch, { ...ending, unlessCancelling: true })) ?? task;
    return { ...ack, accepted: ended.state === "succeeded" && ended.epoch === epoch };
  }

  /**
   * Each delivery of a task has a new epoch, which is a rising number. A task reply with an old epoch does not change the task, because the delivery
   * with this epoch is over.
   */
  async #end(task: Task, epoch: number, ending: TaskEnding): Promise<Task | null> {
    const ended = await this.#deps.inTx(async (tx) => {
      const row = await endDelivery(tx, task.id, task.nodeId, epoch, ending);
      if (row !== null) await wakeWorkflows(tx, [waitKey.task(task.id)]);
      return row;
    });
    if (ended === null)
      this.#deps.log.info("result of a delivery that is over", {
        task_id: task.id,
        node_id: task.nodeId,
        epoch,
        current_epoch: task.epoch,
      });
    else {
      countEnded([ended]);
      this.#deps.onTaskEnded?.();
    }
    return ended;
  }

  async #offerOne(task: Task): Promise<void> {
    if (!isTaskType(task.type)) {
      await this.#end(task, task.epoch, {
        state: "failed",
        errorCode: "unsupported_task",
        errorMessage: `This hub has no task type ${task.type}.`,
      });
      return;
    }
    try {
      const input = await this.#inputOf(task, task.type);
      const order = this.#deps.signer.sign({
        task_id: task.id,
        node_id: task.nodeId,
        epoch: task.epoch,
        type: task.type,
        input,
        input_sha256: createHash("sha256").update(canonicalJson(input)).digest("hex"),
        lease_seconds: TASKS[task.type].leaseSeconds,
        not_after: task.deadline.toISOString(),
      });
      // The hub sends no task offer to a new session before `welcomed` has compared the agent's journal with the node's tasks. If the hub has claimed
      // a task but not sent its offer, the hub offers the task later: in `welcomed`, or after the task's lease.
      if (this.#deps.sessions.get(task.nodeId)?.settled === true)
        this.#send(task.nodeId, { type: "task.offer", order });
    } catch (error) {
      this.#deps.log.warn("a task could not be offered", {
        task_id: task.id,
        node_id: task.nodeId,
        type: task.type,
        error,
      });
      const errorMessage =
        "The hub could not read an input of the task when it offered the task. The hub's log has the reason.";
      await this.#end(task, task.epoch, {
        state: "queued",
        errorCode: "input_unavailable",
        errorMessage,
        delaySeconds: INPUT_RETRY_SECONDS,
        unoffered: true,
      });
    }
  }

  async #inputOf<T extends TaskType>(task: Task, type: T): Promise<Json> {
    const stored = TASKS[type].input.parse(task.input) as TaskInput<T>;
    const resolve = this.#deps.resolveInput[type] as
      | ((input: TaskInput<T>, task: Task) => Promise<TaskInput<T>>)
      | undefined;
    // A task that only plans uses no secret, so the hub adds no secret to the task's input.
    const input = resolve === undefined || asksForPlan(stored) ? stored : await resolve(stored, task);
    return TASKS[type].input.parse(input) as Json;
  }

  #send(nodeId: NodeId, frame: HubFrame): void {
    this.#deps.sessions.get(nodeId)?.channel.send(frame);
  }
}

const countEnded = (tasks: readonly Task[]): void => {
  for (const { type, state } of tasks) taskDeliveriesEnded.add({ type, state });
};
