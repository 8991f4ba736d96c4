import type { KeyObject } from "node:crypto";
import type { NodeId, TaskId } from "../shared/ids.ts";
import type { Json } from "../shared/json.ts";
import type { AgentFrame, WireReply } from "../shared/protocol/frames.ts";
import type { TaskHandlers, TaskInput, TaskReply, TaskRun } from "../shared/tasks/index.ts";
import type { SignedOrder } from "../shared/tasks/order.ts";
import { isPlanResult } from "../shared/tasks/plan.ts";
import { isTaskType, TASK_TYPES, type TaskLane, type TaskType } from "../shared/tasks/task-types.ts";
import { withoutCredentials } from "../shared/without-credentials.ts";
import { type Journal, resultSha256 } from "./journal.ts";
import type { Log } from "./log.ts";
import { messageOf } from "./message-of.ts";
import { judgeOrder } from "./orders.ts";
import type { Workers } from "./system/workers/workers.ts";
import { TaskCancelled } from "./tasks/cancelled.ts";

export interface RunnerOptions {
  readonly journal: Journal;
  readonly handlers: TaskHandlers;
  readonly keys: () => readonly KeyObject[];
  readonly nodeId: NodeId;
  readonly now: () => Date;
  /**
   * Sends a frame if a channel to the hub is open. After the hub's next welcome frame, the agent's task runner repeats the task results that it could
   * not send.
   */
  readonly send: (frame: AgentFrame) => void;
  /**
   * Called when the hub has accepted the result of a task whose effect waits for the acceptance (`effectOnceAccepted`). When the promise of
   * `onAccepted` resolves, the agent has recorded on disk that it must carry out the effect of the task whose result the hub has accepted.
   */
  readonly onAccepted: (taskId: TaskId, type: TaskType) => Promise<void>;
  /** Resolves when the agent's health checks no longer use hardware or drivers that a task may change. */
  readonly beforeWork?: () => Promise<void>;
  readonly works: Pick<Workers, "inputToContinue" | "forget" | "forgetAllBut">;
  readonly log: Log;
}

interface Ref {
  readonly task_id: TaskId;
  readonly epoch: number;
}
interface Job {
  readonly ref: Ref;
  readonly type: TaskType;
  readonly input: Json;
  readonly abort: AbortController;
  running: boolean;
  /** True when the task has replied to the hub. */
  ended: boolean;
}

/** How long running tasks may take to end when the agent stops, in milliseconds: less than systemd's own limit. */
const STOP_WITHIN_MS = 5_000;

/**
 * Carries out the hub's orders: the runner verifies, records and runs each order once, and repeats the reply until the hub acknowledges it. Orders in
 * the lane (queue) `work`, which change the host, run one after the other. Orders in the lane (queue) `look`, which only read the host, run one after
 * the other, but at the same time as those in the lane `work`. A task that started before a restart of the agent and has no recorded end becomes
 * `interrupted`. A task whose work runs outside the agent's process continues over a restart of the agent.
 */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #jobs = new Map<TaskId, Job>();
  /** Replies of tasks that the journal could not store. After a restart of the agent, a task without a stored reply becomes `interrupted`. */
  readonly #unjournalled = new Map<TaskId, Ref & { type: string; reply: WireReply }>();
  #taking: Promise<void> = Promise.resolve();
  /**
   * For each lane (queue) of tasks, `work` or `look`, a promise that resolves at the end of the last accepted order; the lane's next order waits for
   * it.
   */
  readonly #lanes = new Map<TaskLane, Promise<void>>();
  readonly #atWork = new Set<Promise<void>>();
  #stopping = false;
  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** True while a task that changes the host (lane `work`) runs. */
  get isWorking(): boolean {
    return [...this.#jobs.values()].some(
      ({ running, ended, type }) => running && !ended && TASK_TYPES[type].lane === "work",
    );
  }

  /**
   * Before the agent's first hello frame, the runner continues or ends each task that had not ended before the agent's restart. The hub may safely
   * offer a task a second time if the task never began.
   */
  async recover(): Promise<void> {
    const { journal, works } = this.#options;
    const continued = new Set<string>();
    for (const entry of [...journal.withState("received"), ...journal.withState("started")]) {
      if (entry.state === "started" && this.#continue(entry)) continued.add(entry.task_id);
      else await this.#recordEnd(entry, entry.type, entry.state === "received" ? NOT_STARTED : INTERRUPTED);
    }
    await works.forgetAllBut(continued);
  }

  /**
   * Runs the handler of a started task once more if the work of the task continued without the agent. Returns false if the work of the started task
   * did not continue without the agent.
   */
  #continue({ task_id, epoch, type }: Ref & { type: string }): boolean {
    if (!isTaskType(type) || TASK_TYPES[type].worksOutside !== true) return false;
    const input = this.#options.works.inputToContinue(task_id);
    if (input === null) return false;
    this.#options.log.info("task continued after a restart of the agent", { task_id, epoch, type });
    this.#add({ task_id, epoch }, type, input);
    return true;
  }

  /** Repeats replies that the hub has not acknowledged, after each welcome frame and with each heartbeat. */
  resend(): void {
    for (const { task_id, epoch, reply } of [...this.#options.journal.unreported(), ...this.#unjournalled.values()])
      if (reply !== undefined) this.#options.send({ type: "task.result", task_id, epoch, reply });
  }

  /** The runner accepts orders one after the other, so that a second copy of an order finds the first copy's record. */
  offer(order: SignedOrder): Promise<void> {
    const taken = this.#taking.then(() => this.#take(order));
    this.#taking = taken.catch(() => undefined);
    return taken;
  }

  async #take(order: SignedOrder): Promise<void> {
    const { journal, keys, nodeId, now, send, log } = this.#options;
    const ref = { task_id: order.task_id, epoch: order.epoch };
    const input = isTaskType(order.type) ? (await TASK_TYPES[order.type].load()).input : null;
    const highestEpoch = journal.highestEpoch(order.task_id);
    const refusal = judgeOrder(order, { keys: keys(), nodeId, highestEpoch, now: now(), input });
    if (refusal?.reason === "replayed" && order.epoch === highestEpoch) return this.#offeredAgain(ref);
    if (refusal !== null || !isTaskType(order.type)) {
      log.warn("order refused", { ...ref, type: order.type, ...refusal });
      if (refusal !== null) send({ type: "task.rejected", ...ref, ...refusal });
      return;
    }
    try {
      await journal.record({ ...ref, state: "received", type: order.type });
    } catch (error) {
      log.error("an order could not be journalled and is not carried out", { ...ref, error });
      send({ type: "task.result", ...ref, reply: notJournalled(error) });
      return;
    }
    // The hub has replaced a task's earlier delivery by a new one, so the agent does not report how the earlier one ends. A task's new delivery waits
    // until the run of its earlier delivery has stopped.
    const earlier = this.#jobs.get(order.task_id);
    if (earlier !== undefined) {
      earlier.ended = true;
      earlier.abort.abort(new TaskCancelled("superseded", "A newer delivery of the task has come."));
    }
    send({ type: "task.ack", ...ref, state: "received" });
    this.#add(ref, order.type, order.input);
  }

  #add(ref: Ref, type: TaskType, input: Json): void {
    const job: Job = { ref, type, input, abort: new AbortController(), running: false, ended: false };
    this.#jobs.set(ref.task_id, job);
    this.#schedule(job);
  }

  #schedule(job: Job): void {
    const lane = TASK_TYPES[job.type].lane;
    const work = (this.#lanes.get(lane) ?? Promise.resolve())
      .then(() => this.#run(job))
      .catch((error: unknown) => this.#options.log.error("a task could not be run", { ...job.ref, error }))
      .finally(() => this.#atWork.delete(work));
    this.#lanes.set(lane, work);
    this.#atWork.add(work);
  }

  /** Answers a repeated order with the task's present state, because the runner never runs a task twice. */
  #offeredAgain(ref: Ref): void {
    const state = this.#options.journal.entries.find((entry) => entry.task_id === ref.task_id)?.state;
    if (state === "received" || state === "started") this.#options.send({ type: "task.ack", ...ref, state });
    else if (state === "finished") this.resend();
    else
      this.#options.send({
        type: "task.rejected",
        ...ref,
        reason: "replayed",
        message: "This delivery was carried out and reported before.",
      });
  }

  /** The runner also records the cancel of a task's delivery before its order has arrived, because the order may still arrive. */
  async cancel(taskId: TaskId, epoch: number): Promise<void> {
    await this.#taking;
    const ref = { task_id: taskId, epoch };
    const { journal, send } = this.#options;
    const job = this.#jobs.get(taskId);
    if (job !== undefined && job.ref.epoch === epoch) {
      job.abort.abort(new TaskCancelled("cancelled", "Cancelled by the hub."));
      if (!job.running) await this.#end(job, CANCELLED);
    } else if (epoch > journal.highestEpoch(taskId)) {
      await journal.record({ ...ref, state: "finished", type: "", reply: CANCELLED });
      send({ type: "task.cancelled", ...ref });
    } else if (epoch === journal.highestEpoch(taskId)) {
      send({ type: "task.not_cancellable", ...ref, message: "The delivery has ended already." });
      this.resend();
    }
  }

  async acknowledged(taskId: TaskId, epoch: number, accepted?: boolean): Promise<void> {
    const isIt = (one: Ref): boolean => one.task_id === taskId && one.epoch === epoch;
    const entry = this.#options.journal.unreported().find(isIt);
    const told = entry ?? [...this.#unjournalled.values()].find(isIt);
    if (accepted === true && told !== undefined && waitsForAcceptance(told))
      await this.#options.onAccepted(taskId, told.type);
    if (this.#unjournalled.get(taskId)?.epoch === epoch) this.#unjournalled.delete(taskId);
    if (entry === undefined) return;
    const { reply, ...rest } = entry;
    const sha256 = resultSha256(reply);
    const result = sha256 === undefined ? {} : { result_sha256: sha256 };
    await this.#options.journal.record({ ...rest, ...result, state: "reported" });
  }

  /**
   * Called when the hub has said that it deleted this host's node. If the result of an uninstall still waits for acceptance, the deletion of the node
   * proves that the hub accepted the result. A revoked certificate alone does not prove that the hub accepted the uninstall's result.
   */
  async nodeDeleted(): Promise<boolean> {
    const told = [...this.#options.journal.unreported(), ...this.#unjournalled.values()].find(waitsForAcceptance);
    if (told === undefined || !waitsForAcceptance(told)) return false;
    await this.#options.onAccepted(told.task_id, told.type);
    return true;
  }

  /** Ends running tasks as `interrupted`, and waits at most STOP_WITHIN_MS for their end. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const { abort } of this.#jobs.values()) abort.abort(new TaskCancelled("interrupted", "The agent stops."));
    const patience = new Promise<void>((resolve) => setTimeout(resolve, STOP_WITHIN_MS).unref());
    await Promise.race([Promise.all(this.#atWork), patience]);
  }

  async #run(job: Job): Promise<void> {
    const { journal, send, log } = this.#options;
    if (job.ended || this.#stopping) return;
    job.running = true;
    if (TASK_TYPES[job.type].lane === "work") {
      await this.#options.beforeWork?.();
      if (job.ended || this.#stopping) return;
      if (job.abort.signal.aborted) return this.#end(job, CANCELLED);
    }
    try {
      await journal.record({ ...job.ref, state: "started", type: job.type });
    } catch (error) {
      log.error("a task's start could not be journalled and it is not started", { ...job.ref, error });
      return this.#end(job, notJournalled(error));
    }
    send({ type: "task.ack", ...job.ref, state: "started" });
    log.info("task started", { ...job.ref, type: job.type });
    const reply = await this.#handle(job);
    // The journal keeps the state `started` for a task whose work continues while the agent is stopped.
    if (reply === null) this.#jobs.delete(job.ref.task_id);
    else await this.#end(job, reply);
  }

  /**
   * Records a task's reply and sends it, even if the journal could not store the reply. A task's reply in the journal survives a restart of the
   * agent.
   */
  async #recordEnd({ task_id, epoch }: Ref, type: string, reply: WireReply): Promise<void> {
    const { journal, log } = this.#options;
    await journal.record({ task_id, epoch, state: "finished", type, reply }).catch((error: unknown) => {
      log.error("a task's end could not be journalled", { task_id, epoch, error });
      this.#unjournalled.set(task_id, { task_id, epoch, type, reply });
    });
  }

  async #end(job: Job, reply: WireReply): Promise<void> {
    const { send, log } = this.#options;
    if (this.#jobs.get(job.ref.task_id) === job) this.#jobs.delete(job.ref.task_id);
    if (job.ended) return;
    job.ended = true;
    await this.#recordEnd(job.ref, job.type, reply);
    const how = reply.ok ? { ok: true } : { ok: false, error: reply.error, reason: reply.message };
    log.info("task finished", { ...job.ref, type: job.type, ...how });
    // The frame `task.cancelled` has no message, and if the agent reports several ends of a task, the hub keeps the first. If a cancelled task's
    // reply has a message of its own, the agent sends only the frame `task.result`, so that the hub keeps this message.
    if (!reply.ok && reply.error === "cancelled" && (job.abort.signal.reason as Error).message === reply.message)
      send({ type: "task.cancelled", ...job.ref });
    send({ type: "task.result", ...job.ref, reply });
    this.#options.works.forget(job.ref.task_id);
  }

  /** Returns null if the agent stops while the work of the task continues without the agent. */
  async #handle({ ref, type, input, abort: { signal } }: Job): Promise<WireReply | null> {
    let seq = 0;
    const run: TaskRun<TaskType> = {
      taskId: ref.task_id,
      signal,
      progress: (progress) =>
        this.#options.send({ type: "task.progress", ...ref, seq: seq++, progress: progress as Json }),
    };
    try {
      // `judgeOrder` has already checked that the order's input fits the type of the task.
      const handler = this.#options.handlers[type] as (input: TaskInput, run: TaskRun<TaskType>) => Promise<TaskReply>;
      const reply = await handler((await TASK_TYPES[type].load()).input.parse(input), run);
      return reply.ok
        ? { ok: true, result: reply.result as Json }
        : { ok: false, error: reply.error, message: withoutCredentials(reply.message).slice(0, 4000) };
    } catch (error) {
      if (signal.aborted && signal.reason instanceof TaskCancelled) {
        // A handler may throw its own error to say what the cancelled task leaves on the host.
        if (signal.reason.why !== "interrupted")
          return { ...CANCELLED, message: error instanceof TaskCancelled ? error.message : CANCELLED.message };
        return TASK_TYPES[type].worksOutside === true ? null : INTERRUPTED;
      }
      return { ok: false, error: "handler_crashed", message: withoutCredentials(messageOf(error)).slice(0, 4000) };
    }
  }
}

const waitsForAcceptance = <T extends { type: string; reply?: WireReply | undefined }>(
  told: T,
): told is T & { type: TaskType } =>
  told.reply?.ok === true &&
  isTaskType(told.type) &&
  TASK_TYPES[told.type].effectOnceAccepted === true &&
  // An uninstall task that only plans has no effect on the host, even if the hub accepts the task's result or deletes the node.
  !isPlanResult(told.reply.result);

const INTERRUPTED: WireReply = {
  ok: false,
  error: "interrupted",
  message: "The agent ended while the task was running; how far it came is not known.",
};
const NOT_STARTED: WireReply = {
  ok: false,
  error: "not_started",
  message: "The agent ended before the task was started; nothing of it was done.",
};
const CANCELLED = { ok: false, error: "cancelled", message: "Cancelled by the hub." } as const;

const notJournalled = (error: unknown): WireReply => ({
  ok: false,
  error: "not_started",
  message: `The task was not started, as the agent's journal cannot be written: ${messageOf(error)}. Check the host's disk.`,
});
