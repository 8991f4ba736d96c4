import { Journal, type JournalEntry } from "../../agent/journal.ts";
import { Runner } from "../../agent/runner.ts";
import { handlersFor } from "../../agent/tasks/index.ts";
import type { TaskId } from "../../shared/ids.ts";
import type { AgentFrame, JournalState, WireReply } from "../../shared/protocol/frames.ts";
import type { TaskHandlers, TaskType } from "../../shared/tasks/index.ts";
import type { SignedOrder } from "../../shared/tasks/order.ts";
import { type HostFolder, quietAgentLog } from "../fakes/hub/host-folder.ts";
import type { OrderSigner } from "../fakes/hub/orders.ts";
import { countedSystem } from "./counted-system.ts";
import { systemOf, TASK_NODE } from "./task-cases.ts";

const JOURNAL = "var/lib/muster/agent/journal";

/** The places in the life of a task's delivery at which a test kills the agent: before or after the journal has written a state. */
export type Kill = `${"before" | "after"} ${JournalState}`;

const opened = new Set<Journal>();

const forever = (): Promise<never> => new Promise(() => undefined);

/**
 * The agent's journal, runner and task handlers on a folder that stands for a host, without the connection to a hub. With `kill` the agent waits for
 * ever at that write of its journal. The next agent on the host finds only what is on the disk, as after a `kill -9` of the first agent.
 */
export class JournalledAgent {
  readonly #runner: Runner;
  readonly journal: Journal;
  readonly sent: AgentFrame[];
  /** The number of calls of the task handlers. */
  readonly starts: () => number;
  /** The number of calls of the task handlers that changed the host. */
  readonly changes: () => number;
  readonly isDead: () => boolean;
  /** Sets a function to call once after the journal has written the next state `started`. */
  readonly afterStarted: (act: () => void) => void;

  private constructor(
    made: Omit<JournalledAgent, "offer" | "resend" | "replies" | "acknowledge"> & { runner: Runner },
  ) {
    this.#runner = made.runner;
    this.journal = made.journal;
    this.sent = made.sent;
    this.starts = made.starts;
    this.changes = made.changes;
    this.isDead = made.isDead;
    this.afterStarted = made.afterStarted;
  }

  static async start(host: HostFolder, signer: OrderSigner, kill: Kill | null = null): Promise<JournalledAgent> {
    const seen = { starts: 0, changes: 0, isDead: false };
    let afterStarted = (): void => undefined;
    const sent: AgentFrame[] = [];
    const journal = await Journal.open(host.path(JOURNAL));
    opened.add(journal);
    const system = countedSystem(systemOf(host), async () => {
      seen.changes += 1;
    });
    const evidence = { identity: async () => null, resultOf: (taskId: TaskId) => journal.resultOf(taskId) };
    const handlers = handlersFor(system, evidence, { adopt: () => undefined, beforeInventory: async () => undefined });
    const counted = Object.fromEntries(
      Object.entries(handlers).map(([type, handler]) => [
        type,
        (input: never, run: never) => {
          seen.starts += 1;
          return (handler as (input: never, run: never) => unknown)(input, run);
        },
      ]),
    ) as unknown as TaskHandlers;
    const record = journal.record.bind(journal);
    journal.record = async (entry: JournalEntry) => {
      if (seen.isDead) await forever();
      if (kill === `before ${entry.state}`) seen.isDead = true;
      if (seen.isDead) await forever();
      await record(entry);
      if (entry.state === "started") {
        afterStarted();
        afterStarted = () => undefined;
      }
      if (kill === `after ${entry.state}`) seen.isDead = true;
      if (seen.isDead) await forever();
    };
    const runner = new Runner({
      journal,
      handlers: counted,
      keys: () => [signer.key],
      nodeId: TASK_NODE,
      now: () => new Date(),
      send: (frame) => void (seen.isDead || sent.push(frame)),
      onAccepted: async (taskId, type: TaskType) => host.write("accepted", `${taskId} ${type}`),
      works: system.workers,
      log: quietAgentLog,
    });
    await runner.recover();
    return new JournalledAgent({
      runner,
      journal,
      sent,
      starts: () => seen.starts,
      changes: () => seen.changes,
      isDead: () => seen.isDead,
      afterStarted: (act) => {
        afterStarted = act;
      },
    });
  }

  /** Closes the journals of all agents, including killed agents. */
  static async closeAll(): Promise<void> {
    for (const journal of opened) await journal.close();
    opened.clear();
  }

  offer(order: SignedOrder): void {
    void this.#runner.offer(order);
  }
  resend(): void {
    this.#runner.resend();
  }
  /**
   * Tells the agent that the hub has stored the task's reply. The promise of `acknowledge` never resolves if the test kills the agent while the agent
   * handles the acknowledgement.
   */
  acknowledge(order: SignedOrder): Promise<void> {
    return this.#runner.acknowledged(order.task_id, order.epoch, true);
  }
  replies(): WireReply[] {
    return this.sent.filter((frame) => frame.type === "task.result").map(({ reply }) => reply);
  }
}
