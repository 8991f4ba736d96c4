import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AgentFrame } from "../shared/protocol/frames.ts";
import { TASKS, type TaskHandlers } from "../shared/tasks/index.ts";
import type { UnsignedOrder } from "../shared/tasks/order.ts";
import { quietAgentLog } from "../test/fakes/hub/host-folder.ts";
import { newNodeId, newTaskId, OrderSigner } from "../test/fakes/hub/orders.ts";
import { workersAt } from "../test/support/test-workers.ts";
import { until } from "../test/support/until.ts";
import { Journal, resultSha256 } from "./journal.ts";
import { Runner } from "./runner.ts";

const nodeId = newNodeId();
const signer = new OrderSigner();
const DRAIN = { type: "node.drain", input: { reason: "test", deadline_seconds: 60, force: false } } as const;
const CLEANUP = {
  scope: "local",
  temporary: true,
  scratch: [],
  shares: [],
  free_space: false,
  weka_prefixes: [],
  disks: [],
  plan: false,
} as const;
const CHECK = { type: "node.heartbeat_check", input: { nonce: "n" } } as const;
/** What a tool says, with a secret that no rule finds after the cut of a long message. */
const SAID = `no access${".".repeat(3_970)} mN3kQ7_x-Zt0aB4cD5eF6gH7iJ8kL9mN0oP1qR2sT3u`;
const drained = { ok: true, result: { drained: true, sessions_closed: 0, remaining_users: [] as string[] } } as const;

let folder: string;
let file: string;
let sent: AgentFrame[];
let starts: string[];
let accepted: string[];
let release: (() => void)[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "muster-runner-"));
  file = join(folder, "journal");
  sent = [];
  starts = [];
  accepted = [];
  release = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Each task type that the test does not order has a handler that fails. */
const failing = Object.fromEntries(
  Object.keys(TASKS).map((type) => [type, () => Promise.reject(new Error("broken handler"))]),
) as unknown as TaskHandlers;
const handlers: TaskHandlers = {
  ...failing,
  "node.heartbeat_check": async ({ nonce }) => {
    starts.push("check");
    if (nonce === "throws") throw new Error(SAID);
    return { ok: true, result: { nonce, boot_id: "b", uptime_seconds: 1, agent_version: "t" } };
  },
  "node.drain": (_input, run) =>
    new Promise((resolve, reject) => {
      starts.push(run.taskId);
      run.progress({ remaining_users: ["ann"] });
      release.push(() => resolve(drained));
      run.signal.addEventListener("abort", () => reject(run.signal.reason));
    }),
  "node.storage_cleanup": (input, run) =>
    new Promise((resolve, reject) => {
      starts.push(run.taskId);
      workersAt(folder, quietAgentLog).begin(run.taskId, input);
      release.push(() => resolve({ ok: true, result: { steps: [] } }));
      run.signal.addEventListener("abort", () => reject(run.signal.reason));
    }),
  "terminal.close": async () => ({ ok: false, error: "sessions_survive", message: SAID }),
  "node.uninstall": async ({ plan }) => {
    const step = { step: "remove", target: "host", outcome: "planned", message: "", evidence: {} } as const;
    return { ok: true, result: { removes: [], ...(plan === true ? { steps: [step] } : {}) } };
  },
};

async function runner(beforeWork?: () => Promise<void>): Promise<{ runner: Runner; journal: Journal }> {
  const journal = await Journal.open(file);
  const made = new Runner({
    journal,
    handlers,
    keys: () => [signer.key],
    nodeId,
    now: () => new Date(),
    send: (frame) => void sent.push(frame),
    onAccepted: async (taskId) => void accepted.push(taskId),
    ...(beforeWork === undefined ? {} : { beforeWork }),
    works: workersAt(folder, quietAgentLog),
    log: quietAgentLog,
  });
  await made.recover();
  return { runner: made, journal };
}
const order = (what: Pick<UnsignedOrder, "type" | "input">, more: Partial<UnsignedOrder> = {}) =>
  signer.sign(nodeId, { ...what, ...more });
const told = () => sent.map((frame) => ("state" in frame ? `${frame.type} ${frame.state}` : frame.type));
const results = () => sent.filter((frame) => frame.type === "task.result").map((frame) => frame.reply);
const started = (count: number) => until(`${count} starts`, () => (starts.length >= count ? true : undefined));
const ended = (count: number) => until(`${count} results`, () => (results().length >= count ? true : undefined));
const errors = () => results().map((reply) => (reply.ok ? "ok" : reply.error));

describe("runner", () => {
  it.each([
    ["handler_crashed", { type: "node.heartbeat_check", input: { nonce: "throws" } }],
    ["sessions_survive", { type: "terminal.close", input: { login_user: "ada", plan: false } }],
  ] as const)("sends a reply %s without the secret that a handler's message contains", async (error, what) => {
    const { runner: one } = await runner();
    await one.offer(order(what));
    await ended(1);
    const message = SAID.replace(/ \S+$/, " [redacted]");
    expect(results()).toEqual([{ ok: false, error, message }]);
  });

  it("waits with a task that changes the host for the end of the agent's own looks, and may be cancelled meanwhile", async () => {
    const looks: (() => void)[] = [];
    const { runner: one } = await runner(() => new Promise((resolve) => looks.push(resolve)));
    const drain = order(DRAIN);
    await one.offer(drain);
    await one.offer(order(CHECK));
    await ended(1);
    expect([starts, one.isWorking]).toEqual([["check"], true]);
    looks[0]?.();
    await started(2);
    expect(one.isWorking).toBe(true);
    release[0]?.();
    await ended(2);
    expect(one.isWorking).toBe(false);
    const cancelled = order(DRAIN);
    await one.offer(cancelled);
    await until("the second look", () => (looks.length === 2 ? true : undefined));
    await one.cancel(cancelled.task_id, 1);
    looks[1]?.();
    await ended(3);
    expect([starts.length, results()[2]]).toEqual([
      2,
      { ok: false, error: "cancelled", message: "Cancelled by the hub." },
    ]);
  });

  it("writes to the journal before it sends, and keeps the reply until the hub acknowledges it", async () => {
    const { runner: one, journal } = await runner();
    const drain = order(DRAIN);
    await one.offer(drain);
    await started(1);
    release[0]?.();
    await ended(1);
    expect(told()).toEqual(["task.ack received", "task.ack started", "task.progress", "task.result"]);
    one.resend();
    expect(results()).toEqual([drained, drained]);
    await one.acknowledged(drain.task_id, 7);
    expect(journal.unreported()).toHaveLength(1);
    await one.acknowledged(drain.task_id, 1);
    one.resend();
    expect(results()).toHaveLength(2);
    expect((await Journal.open(file)).entries).toEqual([
      { task_id: drain.task_id, epoch: 1, state: "reported", type: "node.drain", result_sha256: resultSha256(drained) },
    ]);
  });

  it("starts a delivery once, also when it is offered several times at once", async () => {
    const { runner: one } = await runner();
    const drain = order(DRAIN);
    await Promise.all([one.offer(drain), one.offer(drain), one.offer(drain)]);
    await started(1);
    await one.offer(drain);
    release[0]?.();
    await ended(1);
    await one.offer(drain);
    await one.acknowledged(drain.task_id, 1);
    await one.offer(drain);
    expect(starts).toHaveLength(1);
    expect(sent.at(-1)).toMatchObject({ type: "task.rejected", reason: "replayed" });
  });

  it("refuses an earlier delivery that arrives late", async () => {
    const { runner: one } = await runner();
    const task_id = newTaskId();
    await one.offer(order(CHECK, { task_id, epoch: 2 }));
    await ended(1);
    await one.offer(order(CHECK, { task_id, epoch: 1 }));
    expect(sent.at(-1)).toMatchObject({ type: "task.rejected", epoch: 1, reason: "replayed" });
    expect(starts).toEqual(["check"]);
  });

  it.each([
    ["of an unknown type", { type: "node.shell", input: {} }, "unsupported_task"],
    ["with the input of another type", { ...CHECK, input: DRAIN.input }, "invalid_input"],
  ] as const)("refuses an order %s", async (_what, what, reason) => {
    const { runner: one, journal } = await runner();
    await one.offer(order(what));
    expect(sent).toMatchObject([{ type: "task.rejected", reason }]);
    expect(journal.entries).toEqual([]);
  });

  it("aborts a run whose delivery was replaced, and reports only the new delivery", async () => {
    const { runner: one, journal } = await runner();
    const task_id = newTaskId();
    await one.offer(order(DRAIN, { task_id, epoch: 1 }));
    await started(1);
    await one.offer(order(DRAIN, { task_id, epoch: 2 }));
    await started(2);
    release[1]?.();
    await ended(1);
    expect(sent.filter((frame) => frame.type === "task.result")).toMatchObject([{ epoch: 2, reply: { ok: true } }]);
    expect(journal.highestEpoch(task_id)).toBe(2);
  });

  it("runs drains one after the other, and a check at the same time", async () => {
    const { runner: one } = await runner();
    await one.offer(order(DRAIN));
    await one.offer(order(DRAIN));
    await started(1);
    await one.offer(order(CHECK));
    await ended(1);
    expect(starts).toHaveLength(2);
    release[0]?.();
    await started(3);
    release[1]?.();
    await ended(3);
    expect(errors()).toEqual(["ok", "ok", "ok"]);
  });

  it("reports started tasks as interrupted and waiting tasks as not started after a restart", async () => {
    const first = await runner();
    await first.runner.offer(order(DRAIN));
    await first.runner.offer(order(DRAIN));
    await started(1);
    // The test does not stop the first runner, so the second runner starts as after kill -9 of the agent.
    const second = await runner();
    second.runner.resend();
    expect(errors().sort()).toEqual(["interrupted", "not_started"]);
    expect(starts).toHaveLength(1);
  });

  it("continues a task whose work runs outside the agent, after a stop and after a kill", async () => {
    const clean = signer.sign(nodeId, { type: "node.storage_cleanup", input: CLEANUP });
    const { runner: one, journal } = await runner();
    await one.offer(clean);
    await started(1);
    await one.stop();
    expect(results()).toEqual([]);
    expect(journal.entries).toMatchObject([{ task_id: clean.task_id, state: "started" }]);
    const { runner: two } = await runner();
    await started(2);
    await two.offer(clean);
    expect(starts).toEqual([clean.task_id, clean.task_id]);
    release.at(-1)?.();
    await ended(1);
    expect(errors()).toEqual(["ok"]);
    expect(workersAt(folder, quietAgentLog).inputToContinue(clean.task_id)).toBeNull();
  });

  it("reports a task as interrupted if its work left nothing to continue", async () => {
    const clean = signer.sign(nodeId, { type: "node.storage_cleanup", input: CLEANUP });
    const { runner: one } = await runner();
    await one.offer(clean);
    await started(1);
    await one.stop();
    workersAt(folder, quietAgentLog).forget(clean.task_id);
    await runner();
    expect(errors()).toEqual([]);
    const { runner: three } = await runner();
    three.resend();
    expect(errors()).toEqual(["interrupted"]);
  });

  it("carries out an accepted uninstall, and never the plan of one", async () => {
    const { runner: one } = await runner();
    const uninstall = (more: object) => order({ type: "node.uninstall", input: { reason: "test", ...more } });
    const plan = uninstall({ plan: true });
    await one.offer(plan);
    await ended(1);
    expect(await one.nodeDeleted()).toBe(false);
    await one.acknowledged(plan.task_id, 1, true);
    expect(accepted).toEqual([]);
    const work = uninstall({});
    await one.offer(work);
    await ended(2);
    await one.acknowledged(work.task_id, 1, true);
    expect(accepted).toEqual([work.task_id]);
  });

  it("ends running tasks as interrupted when the agent stops", async () => {
    const { runner: one } = await runner();
    await one.offer(order(DRAIN));
    await one.offer(order(DRAIN));
    await started(1);
    await one.stop();
    expect(errors()).toEqual(["interrupted"]);
    expect(starts).toHaveLength(1);
  });

  it("cancels running tasks, waiting tasks, and tasks whose order has not arrived", async () => {
    const { runner: one } = await runner();
    const [running, waiting, onItsWay] = [order(DRAIN), order(DRAIN), order(DRAIN)];
    await one.offer(running);
    await one.offer(waiting);
    await started(1);
    await one.cancel(waiting.task_id, 1);
    await one.cancel(onItsWay.task_id, 1);
    await one.offer(onItsWay);
    await one.cancel(running.task_id, 1);
    await until("three are cancelled", () =>
      sent.filter((frame) => frame.type === "task.cancelled").length === 3 ? true : undefined,
    );
    one.resend();
    expect(starts).toEqual([running.task_id]);
    expect(new Set(errors())).toEqual(new Set(["cancelled"]));
  });

  it("does not cancel an ended task, and repeats its result", async () => {
    const { runner: one } = await runner();
    const check = order(CHECK);
    await one.offer(check);
    await ended(1);
    await one.cancel(check.task_id, 1);
    expect(told().slice(-2)).toEqual(["task.not_cancellable", "task.result"]);
  });

  it("reports a handler that throws", async () => {
    const { runner: one } = await runner();
    const input = { system_id: "abc", maas_url: "http://r/MAAS", interval_seconds: 900, machine_token: null };
    await one.offer(signer.sign(nodeId, { type: "node.hw_sync_reseed", input }));
    await ended(1);
    expect(results()).toEqual([{ ok: false, error: "handler_crashed", message: "broken handler" }]);
  });

  it("starts no task without a journal record, and reports why", async () => {
    mkdirSync(`${file}.new`);
    const { runner: one } = await runner();
    await one.offer(order(CHECK));
    expect(starts).toEqual([]);
    expect(results()).toMatchObject([{ ok: false, error: "not_started", message: expect.stringContaining("disk") }]);
  });

  it("never writes a task's input to the journal", async () => {
    const { runner: one } = await runner();
    const machine_token = { consumer_key: "canary-1", token_key: "canary-2", token_secret: "canary-3" };
    const input = { system_id: "abc", maas_url: "http://r/MAAS", interval_seconds: 900, machine_token };
    await one.offer(signer.sign(nodeId, { type: "node.hw_sync_reseed", input }));
    await ended(1);
    expect(readFileSync(file, "utf8")).not.toContain("canary");
  });
});
