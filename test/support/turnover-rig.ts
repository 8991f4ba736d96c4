import { randomUUID } from "node:crypto";
import { readTask } from "../../hub/db/queries/task-reads.ts";
import { enqueueTask } from "../../hub/db/queries/tasks.ts";
import type { SanitizationRecordRow, Task } from "../../hub/db/schema/index.ts";
import { type PreparedRecord, prepareRecord, type Turnover } from "../../hub/node/prepare-record.ts";
import { type StoredRecord, storeRecord } from "../../hub/node/store-record.ts";
import { type NodeId, WorkflowId } from "../../shared/ids.ts";
import { TASKS, type TaskInput, type TaskType } from "../../shared/tasks/index.ts";
import type { HostFolder } from "../fakes/hub/host-folder.ts";
import { type AgentHosts, hubOf, prepareHost } from "./agent-hosts.ts";
import type { Child } from "./child.ts";
import type { GatewayRig } from "./gateway-rig.ts";
import { until } from "./until.ts";

export class TurnoverHost {
  readonly rig: GatewayRig;
  readonly nodeId: NodeId;
  readonly folder: HostFolder;
  readonly #hosts: AgentHosts;
  #agent: Child;

  private constructor(rig: GatewayRig, hosts: AgentHosts, nodeId: NodeId, folder: HostFolder) {
    this.rig = rig;
    this.nodeId = nodeId;
    this.folder = folder;
    this.#hosts = hosts;
    this.#agent = hosts.start(folder);
  }

  static async start(rig: GatewayRig, hosts: AgentHosts): Promise<TurnoverHost> {
    const nodeId = await rig.addNode("active");
    const folder = hosts.add();
    prepareHost(folder, hubOf(rig), { nodeId, token: await rig.issueToken(nodeId) });
    return new TurnoverHost(rig, hosts, nodeId, folder);
  }

  get agent(): Child {
    return this.#agent;
  }
  restart(): void {
    this.#agent = this.#hosts.start(this.folder);
  }
  /** Restarts the agent with an empty journal, because a reimaged host does not keep the old system's journal. */
  async forget(): Promise<void> {
    await this.#agent.stop();
    this.folder.write("var/lib/muster/agent/journal", "");
    this.restart();
  }

  queue<T extends TaskType>(type: T, input: TaskInput<T>): Promise<Task> {
    const task = { nodeId: this.nodeId, type, input, idempotencyKey: randomUUID(), deadlineSeconds: 600 };
    return this.rig.inTx(async (tx) => (await enqueueTask(tx, task)).task);
  }
  ended(task: Task): Promise<Task> {
    return until(`the end of ${task.type}`, async () => {
      const now = await readTask(this.rig.db, task.id);
      return now?.finishedAt == null ? undefined : now;
    });
  }
  /** Lets the agent run a task with one cleaning step: the close of the terminals of a user who does not exist. */
  async clean(): Promise<Task> {
    return this.ended(await this.queue("terminal.close", { login_user: "nobody-here", plan: false }));
  }

  prepare(tasks: readonly Task[], more: Partial<Turnover> = {}): Promise<PreparedRecord> {
    const turnover: Turnover = {
      nodeId: this.nodeId,
      startedAt: new Date(),
      tasks,
      unconfirmed: [],
      allocation: {
        id: randomUUID(),
        tenant: "acme",
        login_user: "ann",
        granted_root: false,
        from: new Date().toISOString(),
        to: null,
      },
      operation: {
        decommission_id: WorkflowId.parse(randomUUID()),
        mode: "soft_reset",
        reason: "the tenant left",
        requested_by: "admin",
      },
      trust: "in_place",
      required: [{ type: "terminal.close", step: "terminals" }],
      residue: { has_baseline: true, items: [{ item: "accounts", status: "clean", names: [], more: 0, reason: null }] },
      gpus: [],
      statements: [],
      disk_samples: [],
      unsigned_reason: null,
      ...more,
    };
    return this.rig.inTx((tx) => prepareRecord(tx, turnover));
  }
  async sign(text: string): Promise<Task> {
    return this.ended(await this.queue("node.sign_record", { text }));
  }
  /**
   * Stores a sanitization record. The argument `signing` is the task in which the agent signed the sanitization record, or null if no agent signed
   * it.
   */
  store(text: string, signing: Task | null, change: object = {}): Promise<StoredRecord> {
    const signed =
      signing === null
        ? null
        : TASKS["node.sign_record"].result.parse({ ...(signing.result as object | null), ...change });
    const { countersign } = this.rig.signer;
    return this.rig.inTx((tx) => storeRecord(tx, { text, signed, countersign }));
  }

  async turnOver(more: Partial<Turnover> = {}): Promise<SanitizationRecordRow> {
    const { text } = await this.prepare([await this.clean()], more);
    const stored = await this.store(text, await this.sign(text));
    if (!("stored" in stored)) throw new Error(stored.message);
    return stored.stored;
  }
}
