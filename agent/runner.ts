import type { KeyObject } from "node:crypto";
import type { NodeId, TaskId } from "../shared/ids.ts";
import type { Json } from "../shared/json.ts";
import type { AgentFrame, WireReply } from "../shared/protocol/frames.ts";
import {
  isTaskType,
  TASKS,
  type TaskHandlers,
  type TaskInput,
  type TaskReply,
  type TaskRun,
  type TaskType,
} from "../shared/tasks/index.ts";
import type { SignedOrder } from "../shared/tasks/order.ts";
import type { Journal } from "./journal.ts";
import type { Log } from "./log.ts";
import { judgeOrder } from "./orders.ts";

export interface RunnerOptions {
  readonly journal: Journal;
  readonly handlers: TaskHandlers;
  readonly key: KeyObject;
  readonly nodeId: NodeId;
  /** Sends if there is a channel; what is not sent is said again on the next welcome. */
  readonly send: (frame: AgentFrame) => void;
  readonly log: Log;
}

interface Running {
  readonly epoch: number;
  readonly abort: AbortController;
}

/**
 * Carries out orders: verify, journal, run once, journal, report until acknowledged. Orders run one after the other. What was started and has
 * no recorded end when the agent starts is reported as `interrupted`: whether to run it again is the hub's to decide.
 */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #running = new Map<TaskId, Running>();
  #queue: Promise<void> = Promise.resolve();
  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Called once, before the first hello. */
  async recover(): Promise<void> {
    const { journal } = this.#options;
    for (const entry of [...journal.withState("received"), ...journal.withState("started")]) {
      const reply: WireReply = {
        ok: false,
        error: "interrupted",
        message: `The agent ended while the task was ${entry.state}.`,
      };
      await journal.record({ ...entry, state: "finished", reply });
    }
  }

  /** Says again what the hub has not acknowledged; on each welcome and now and then. */
  resend(): void {
    for (const entry of this.#options.journal.unreported()) {
      if (entry.reply !== undefined)
        this.#options.send({ type: "task.result", task_id: entry.task_id, epoch: entry.epoch, reply: entry.reply });
    }
  }

  async offer(order: SignedOrder): Promise<void> {
    const { journal, key, nodeId, send, log } = this.#options;
    const ref = { task_id: order.task_id, epoch: order.epoch };
    const known = journal.entries.find((entry) => entry.task_id === order.task_id && entry.epoch === order.epoch);
    if (known !== undefined) return this.#offeredAgain(known.state, ref);
    const refusal = judgeOrder(order, {
      key,
      nodeId,
      highestEpoch: journal.highestEpoch(order.task_id),
      now: new Date(),
    });
    if (refusal !== null) {
      log.warn("order refused", { ...ref, type: order.type, ...refusal });
      send({ type: "task.rejected", ...ref, ...refusal });
      return;
    }
    try {
      await journal.record({ ...ref, state: "received", type: order.type });
    } catch (error) {
      // e.g. the disk is full: not acknowledged, so the hub offers it again when the lease has lapsed.
      log.error("an order could not be journalled and is not carried out", { ...ref, error });
      return;
    }
    send({ type: "task.ack", ...ref, state: "received" });
    this.#queue = this.#queue
      .then(() => this.#run(order))
      .catch((error: unknown) => log.error("a task's end could not be journalled", { ...ref, error }));
  }

  /** The same delivery twice: it is never run twice. */
  #offeredAgain(
    state: "received" | "started" | "finished" | "reported",
    ref: { task_id: TaskId; epoch: number },
  ): void {
    if (state === "finished") this.resend();
    else if (state !== "reported") this.#options.send({ type: "task.ack", ...ref, state });
    else
      this.#options.send({
        type: "task.rejected",
        ...ref,
        reason: "replayed",
        message: "This delivery was carried out and reported before.",
      });
  }

  cancel(taskId: TaskId, epoch: number): void {
    const running = this.#running.get(taskId);
    if (running !== undefined && running.epoch === epoch) running.abort.abort(new Error("cancelled by the hub"));
    else this.resend();
  }

  async acknowledged(taskId: TaskId, epoch: number): Promise<void> {
    const entry = this.#options.journal.unreported().find((one) => one.task_id === taskId && one.epoch === epoch);
    if (entry === undefined) return;
    const { reply: _delivered, ...rest } = entry;
    await this.#options.journal.record({ ...rest, state: "reported" });
  }

  /** Lets what runs end as `interrupted`. */
  stop(): void {
    for (const { abort } of this.#running.values()) abort.abort(new Error("the agent stops"));
  }

  async #run(order: SignedOrder): Promise<void> {
    const { journal, send, log } = this.#options;
    if (!isTaskType(order.type)) return;
    const ref = { task_id: order.task_id, epoch: order.epoch };
    const abort = new AbortController();
    this.#running.set(order.task_id, { epoch: order.epoch, abort });
    await journal.record({ ...ref, state: "started", type: order.type });
    log.info("task started", { ...ref, type: order.type });
    const reply = await this.#handle(order, order.type, abort.signal);
    this.#running.delete(order.task_id);
    await journal.record({ ...ref, state: "finished", type: order.type, reply });
    log.info("task finished", {
      ...ref,
      type: order.type,
      ok: reply.ok,
      ...(reply.ok ? {} : { error: reply.error, reason: reply.message }),
    });
    send({ type: "task.result", ...ref, reply });
  }

  async #handle(order: SignedOrder, type: TaskType, signal: AbortSignal): Promise<WireReply> {
    let seq = 0;
    const run: TaskRun<TaskType> = {
      taskId: order.task_id,
      signal,
      progress: (progress) =>
        this.#options.send({
          type: "task.progress",
          task_id: order.task_id,
          epoch: order.epoch,
          seq: seq++,
          progress: progress as Json,
        }),
    };
    try {
      // The order was judged: its input is what the type says.
      const handler = this.#options.handlers[type] as (input: TaskInput, run: TaskRun<TaskType>) => Promise<TaskReply>;
      const reply = await handler(TASKS[type].input.parse(order.input), run);
      return reply.ok
        ? { ok: true, result: reply.result as Json }
        : { ok: false, error: reply.error, message: reply.message.slice(0, 4000) };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (!signal.aborted) return { ok: false, error: "handler_crashed", message: message.slice(0, 4000) };
      const stopped = signal.reason instanceof Error && signal.reason.message === "the agent stops";
      return { ok: false, error: stopped ? "interrupted" : "cancelled", message: String(signal.reason) };
    }
  }
}
