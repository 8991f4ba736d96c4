import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { readTask } from "../../../hub/db/queries/task-reads.ts";
import { cancelTask, enqueueTask } from "../../../hub/db/queries/tasks.ts";
import { type Task, tasks } from "../../../hub/db/schema/index.ts";
import type { NodeId, TaskId } from "../../../shared/ids.ts";
import type { WireReply } from "../../../shared/protocol/frames.ts";
import type { SignedOrder } from "../../../shared/tasks/order.ts";
import { GatewayRig, type Identity } from "../../support/gateway-rig.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import { helloOf } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

const MACHINE_TOKEN = { consumer_key: "ck", token_key: "tk", token_secret: "the-planted-secret" };
const readToken = vi.fn(async () => MACHINE_TOKEN);

let rig: GatewayRig;
let identity: Identity;
beforeAll(async () => {
  rig = await GatewayRig.start({
    resolveInput: {
      "node.hw_sync_reseed": async (input) => ({ ...input, machine_token: await readToken() }),
    },
  });
});
beforeEach(async () => {
  identity = await rig.enrolled();
  readToken.mockReset();
  readToken.mockImplementation(async () => MACHINE_TOKEN);
});
afterAll(() => rig.stop());

const kept = keptAgents(() => rig);
const connect = (journal: { task_id: TaskId; epoch: number; state: "received" | "started" }[] = []) =>
  kept.connect(identity, { hello: { journal } });
async function enqueue(more: { key?: string; maxAttempts?: number; deadlineSeconds?: number; nodeId?: NodeId } = {}) {
  const { task } = await rig.inTx((tx) =>
    enqueueTask(tx, {
      nodeId: more.nodeId ?? identity.nodeId,
      type: "node.heartbeat_check",
      input: { nonce: "n" },
      idempotencyKey: more.key ?? randomUUID(),
      deadlineSeconds: more.deadlineSeconds ?? 3_600,
      ...(more.maxAttempts === undefined ? {} : { maxAttempts: more.maxAttempts }),
    }),
  );
  return task;
}
const row = async (id: TaskId): Promise<Task> => {
  const task = await readTask(rig.db, id);
  if (task === null) throw new Error(`task ${id} is gone`);
  return task;
};
const inState = (id: TaskId, state: Task["state"]) =>
  until(`the task is ${state}`, async () => {
    const task = await row(id);
    return task.state === state ? task : undefined;
  });
const change = (id: TaskId, set: Partial<typeof tasks.$inferInsert>) =>
  rig.db.update(tasks).set(set).where(eq(tasks.id, id));
const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);
const RESULT = { nonce: "n", boot_id: "boot-1", uptime_seconds: 5, agent_version: "1.0.0" };
const DONE: WireReply = { ok: true, result: RESULT };

async function offered(more: Parameters<typeof enqueue>[0] = {}) {
  const agent = await connect();
  const task = await enqueue(more);
  const { order } = await agent.next("task.offer");
  expect(order.task_id).toBe(task.id);
  const ref = { task_id: task.id, epoch: order.epoch };
  return { agent, task, order, ref };
}
async function running(more: Parameters<typeof enqueue>[0] = {}) {
  const all = await offered(more);
  all.agent.send({ type: "task.ack", ...all.ref, state: "received" });
  await inState(all.task.id, "running");
  return all;
}
describe("a task", () => {
  it("is offered with a signature, acknowledged and carried out, and each resent result is acknowledged", async () => {
    const { agent, task, order, ref } = await running();
    expect(rig.hasSigned(order)).toBe(true);
    expect(rig.hasSigned({ ...order, epoch: order.epoch + 1 })).toBe(false);
    expect(order).toMatchObject({ node_id: identity.nodeId, epoch: 1, input: { nonce: "n" }, lease_seconds: 30 });
    agent.send({ type: "task.result", ...ref, reply: DONE });
    expect(await agent.next("task.result_ack")).toMatchObject(ref);
    const ended = await inState(task.id, "succeeded");
    expect(ended).toMatchObject({ result: RESULT, errorCode: null, leaseUntil: null });
    agent.send({ type: "task.result", ...ref, reply: { ok: false, error: "handler_crashed", message: "no" } });
    expect(await agent.next("task.result_ack")).toMatchObject(ref);
    expect(await row(task.id)).toEqual(ended);
  });

  it("is the same task for the same key, and another task for another node", async () => {
    const other = await rig.enrolled();
    const first = await enqueue({ key: "k" });
    expect((await enqueue({ key: "k" })).id).toBe(first.id);
    expect((await enqueue({ key: "k", nodeId: other.nodeId })).id).not.toBe(first.id);
  });

  it("waits in the database for an agent and a hub, and the agent gets one task at a time", async () => {
    const [first, second] = [await enqueue(), await enqueue()];
    await rig.restart();
    const agent = await connect();
    const { order } = await agent.next("task.offer");
    expect(order.task_id).toBe(first.id);
    await agent.settled();
    expect((await row(second.id)).state).toBe("queued");
    agent.send({ type: "task.result", task_id: first.id, epoch: order.epoch, reply: DONE });
    expect((await agent.next("task.offer")).order.task_id).toBe(second.id);
  });

  it("wakes the workflow that waits for its end", async () => {
    const { agent, task, ref } = await running();
    const waiting = await rig.waitingWorkflow(`task:${task.id}`);
    agent.send({ type: "task.result", ...ref, reply: DONE });
    await until("the workflow is due", async () => ((await waiting.isDue()) ? true : undefined));
  });

  it("reaches its agent through any hub", async () => {
    const second = await rig.secondHub();
    const agent = await kept.connect(identity, { port: second.port });
    const task = await enqueue();
    expect((await agent.next("task.offer")).order.task_id).toBe(task.id);
    await second.close();
  });

  it("is delivered by long poll as by WebSocket", async () => {
    const base = `/internal/v1/nodes/${identity.nodeId}`;
    const body = { hello: helloOf(identity) };
    const opened = await rig.ask("POST", `${base}/sessions`, { as: identity, body });
    const { session_epoch } = (opened.json as { welcome: { session_epoch: number } }).welcome;
    const wait = `${base}/tasks/wait?session_epoch=${session_epoch}&timeout_ms=30000`;
    const waiting = rig.ask("GET", wait, { as: identity });
    const task = await enqueue();
    const { frames } = (await waiting).json as { frames: { type: string; order: SignedOrder }[] };
    const offer = frames.find((frame) => frame.type === "task.offer");
    expect(offer?.order.task_id).toBe(task.id);
    const reply = { type: "task.result", task_id: task.id, epoch: offer?.order.epoch, reply: DONE };
    const answer = await rig.ask("POST", `${base}/frames`, { as: identity, body: { session_epoch, frames: [reply] } });
    expect(JSON.stringify(answer.json)).toContain("task.result_ack");
    await inState(task.id, "succeeded");
  });

  it("of an unknown type fails and does not block the next task", async () => {
    const unknown = await enqueue();
    await change(unknown.id, { type: "node.shell" });
    const next = await enqueue();
    const agent = await connect();
    expect((await agent.next("task.offer")).order.task_id).toBe(next.id);
    expect(await inState(unknown.id, "failed")).toMatchObject({ errorCode: "unsupported_task" });
  });
});

describe("a secret that a task needs", () => {
  const reseed = () =>
    rig.inTx((tx) =>
      enqueueTask(tx, {
        nodeId: identity.nodeId,
        type: "node.hw_sync_reseed",
        input: { system_id: "abc", maas_url: "http://rack:5248/MAAS", interval_seconds: 300, machine_token: null },
        idempotencyKey: randomUUID(),
        deadlineSeconds: 3_600,
      }),
    );

  it("is in the order and in no row", async () => {
    const agent = await connect();
    const { task } = await reseed();
    const { order } = await agent.next("task.offer");
    expect(order.input).toMatchObject({ machine_token: MACHINE_TOKEN });
    expect(JSON.stringify(await rig.snapshot())).not.toContain("planted-secret");
    expect((await row(task.id)).input).toMatchObject({ machine_token: null });
  });

  it("that cannot be read returns the task to the queue with a pause, and never uses up an attempt", async () => {
    const times = 6;
    for (let time = 0; time < times; time += 1) readToken.mockRejectedValueOnce(new Error("MAAS is away"));
    const agent = await connect();
    const { task } = await reseed();
    for (let epoch = 1; epoch <= times; epoch += 1) {
      const queued = await until("the task is back in the queue", async () => {
        const now = await row(task.id);
        return now.state === "queued" && now.epoch === epoch ? now : undefined;
      });
      expect(queued).toMatchObject({ errorCode: "input_unavailable", attempts: 0 });
      expect(queued.notBefore.getTime()).toBeGreaterThan(queued.updatedAt.getTime());
      await change(task.id, { notBefore: ago(1) });
    }
    expect((await agent.next("task.offer")).order.epoch).toBe(times + 1);
    expect(await row(task.id)).toMatchObject({ attempts: 1 });
  });
});

describe("the hub ignores", () => {
  it("a result of an old epoch, but acknowledges it so that it is not resent", async () => {
    const { agent, task, ref } = await running();
    await change(task.id, { leaseUntil: ago(1) });
    const second = await agent.next("task.offer");
    expect(second.order).toMatchObject({ task_id: task.id, epoch: 2 });
    const before = await row(task.id);
    agent.send({ type: "task.result", ...ref, reply: DONE });
    expect(await agent.next("task.result_ack")).toMatchObject(ref);
    expect(await row(task.id)).toEqual(before);
    for (const type of ["task.ack", "task.progress", "task.cancelled"] as const) {
      if (type === "task.ack") agent.send({ type, ...ref, state: "started" });
      else if (type === "task.progress") agent.send({ type, ...ref, seq: 99, progress: null });
      else agent.send({ type, ...ref });
    }
    agent.send({ type: "task.rejected", ...ref, reason: "replayed", message: "seen" });
    await agent.settled();
    expect(await row(task.id)).toEqual(before);
  });

  it("a report of another node on this node's task", async () => {
    const { task, ref } = await running();
    const other = await rig.enrolled();
    const intruder = await kept.connect(other);
    const before = await row(task.id);
    intruder.send({ type: "task.result", ...ref, reply: DONE });
    intruder.send({ type: "task.progress", ...ref, seq: 5, progress: null });
    intruder.send({ type: "task.cancelled", ...ref });
    await intruder.settled();
    expect(await row(task.id)).toEqual(before);
  });

  it("an epoch that the hub never issued, and a task that never existed", async () => {
    const { agent, task, ref } = await running();
    const before = await row(task.id);
    agent.send({ type: "task.result", ...ref, epoch: 7, reply: DONE });
    agent.send({ type: "task.result", task_id: randomUUID() as TaskId, epoch: 1, reply: DONE });
    await agent.settled();
    expect(await row(task.id)).toEqual(before);
  });

  it("progress that comes twice or late", async () => {
    const { agent, task, ref } = await running();
    agent.send({ type: "task.progress", ...ref, seq: 3, progress: null });
    await agent.settled();
    const after = await row(task.id);
    expect(after.progressSeq).toBe(3);
    for (const seq of [3, 1]) agent.send({ type: "task.progress", ...ref, seq, progress: null });
    await agent.settled();
    expect(await row(task.id)).toEqual(after);
  });
});

describe("a lease", () => {
  it("is renewed by progress", async () => {
    const { agent, task, ref } = await running();
    await change(task.id, { leaseUntil: new Date(Date.now() + 5_000) });
    agent.send({ type: "task.progress", ...ref, seq: 0, progress: null });
    await agent.settled();
    expect((await row(task.id)).leaseUntil?.getTime()).toBeGreaterThan(Date.now() + 15_000);
  });

  it("that expires returns the task to the queue with a higher epoch, until its attempts are used up", async () => {
    const { agent, task } = await running({ maxAttempts: 2 });
    await change(task.id, { leaseUntil: ago(1) });
    expect((await agent.next("task.offer")).order.epoch).toBe(2);
    await change(task.id, { leaseUntil: ago(1) });
    expect(await inState(task.id, "failed")).toMatchObject({ errorCode: "lease_lapsed", epoch: 2 });
  });

  it("that expires fails a destructive task or one of an unknown type, which is never run again", async () => {
    const task = await enqueue();
    await change(task.id, { type: "node.of_a_newer_hub", state: "running", epoch: 1, attempts: 1, leaseUntil: ago(1) });
    expect(await inState(task.id, "failed")).toMatchObject({ errorCode: "lease_lapsed" });
  });

  it("does not outlive the task's deadline", async () => {
    const waiting = await enqueue();
    await change(waiting.id, { deadline: ago(1) });
    expect(await inState(waiting.id, "expired")).toMatchObject({ errorCode: "deadline_passed" });
  });
});

describe("a reconnect", () => {
  it("reveals a delivery that never arrived: it is offered again at once and not counted", async () => {
    const { task, agent } = await offered();
    agent.cut();
    const next = await connect();
    expect((await next.next("task.offer")).order).toMatchObject({ task_id: task.id, epoch: 2 });
    expect((await row(task.id)).attempts).toBe(1);
  });

  it("reveals a delivery whose acknowledgement was lost: the task continues", async () => {
    const { task, agent, ref } = await offered();
    agent.cut();
    const next = await connect([{ ...ref, state: "started" }]);
    expect(await inState(task.id, "running")).toMatchObject({ epoch: 1 });
    next.send({ type: "task.result", ...ref, reply: DONE });
    await inState(task.id, "succeeded");
  });

  it("of a host that lost its journal runs a harmless task again, and counts it", async () => {
    const { task, agent } = await running();
    agent.cut();
    const next = await connect();
    expect((await next.next("task.offer")).order).toMatchObject({ task_id: task.id, epoch: 2 });
    expect((await row(task.id)).attempts).toBe(2);
  });

  it("of a host that lost its journal never runs a destructive task again", async () => {
    const { task, agent } = await running();
    await change(task.id, { type: "node.of_a_newer_hub" });
    agent.cut();
    await connect();
    expect(await inState(task.id, "failed")).toMatchObject({ errorCode: "interrupted" });
  });
});

describe("a reply", () => {
  const replied = async (reply: WireReply, more: Parameters<typeof enqueue>[0] = {}) => {
    const { agent, task, ref } = await running(more);
    agent.send({ type: "task.result", ...ref, reply });
    await agent.next("task.result_ack");
    return row(task.id);
  };

  it("that does not fit the task's type counts as a failure", async () => {
    const task = await replied({ ok: true, result: { anything: true } });
    expect(task).toMatchObject({ state: "failed", errorCode: "invalid_result", result: null });
  });

  it("with a transient error queues the task again with a pause", async () => {
    const task = await replied({ ok: false, error: "handler_crashed", message: "oom" });
    expect(task).toMatchObject({ state: "queued", errorCode: "handler_crashed", errorMessage: "oom", attempts: 1 });
    expect(task.notBefore.getTime()).toBeGreaterThan(task.updatedAt.getTime());
  });

  it("that reports a harmless task as interrupted queues it again", async () => {
    expect(await replied({ ok: false, error: "interrupted", message: "reboot" })).toMatchObject({ state: "queued" });
  });

  it("with a transient error at the last attempt fails the task", async () => {
    const task = await replied({ ok: false, error: "handler_crashed", message: "oom" }, { maxAttempts: 1 });
    expect(task).toMatchObject({ state: "failed", errorCode: "handler_crashed" });
  });

  it("with an unknown error fails the task", async () => {
    const task = await replied({ ok: false, error: "made_up", message: "?" });
    expect(task).toMatchObject({ state: "failed", errorCode: "made_up" });
  });

  it.each(["bad_signature", "replayed", "expired", "unsupported_task"] as const)(
    "that refuses the order as %s fails the task and says why",
    async (reason) => {
      const { agent, task, ref } = await offered();
      agent.send({ type: "task.rejected", ...ref, reason, message: "no" });
      expect(await inState(task.id, "failed")).toMatchObject({ errorCode: `order_rejected_${reason}` });
    },
  );
});

describe("a cancel", () => {
  const cancel = (id: TaskId) => rig.inTx((tx) => cancelTask(tx, id));

  it("of a queued task takes effect at once, and of a finished task changes nothing", async () => {
    const task = await enqueue();
    expect(await cancel(task.id)).toMatchObject({ state: "cancelled", errorCode: "cancelled" });
    expect(await cancel(task.id)).toBeNull();
    const agent = await connect();
    await agent.settled();
    expect(agent.frames.some((frame) => frame.type === "task.offer")).toBe(false);
  });

  it("of a running task is sent to the agent, and no other task starts before it has ended", async () => {
    const { agent, task, ref } = await running();
    const second = await enqueue();
    expect(await cancel(task.id)).toMatchObject({ state: "cancelling" });
    expect(await agent.next("task.cancel")).toMatchObject(ref);
    expect((await row(second.id)).state).toBe("queued");
    agent.send({ type: "task.cancelled", ...ref });
    expect((await agent.next("task.offer")).order.task_id).toBe(second.id);
    expect(await row(task.id)).toMatchObject({ state: "cancelled" });
  });

  it("that comes too late leaves the result in place", async () => {
    const { agent, task, ref } = await running();
    await cancel(task.id);
    agent.send({ type: "task.result", ...ref, reply: DONE });
    expect(await inState(task.id, "succeeded")).toMatchObject({ result: RESULT });
  });

  it("ends a task that would have been retried", async () => {
    const { agent, task, ref } = await running({ maxAttempts: 1 });
    await cancel(task.id);
    agent.send({ type: "task.result", ...ref, reply: { ok: false, error: "interrupted", message: "stop" } });
    const ended = await inState(task.id, "cancelled");
    expect(ended.finishedAt).not.toBeNull();
  });
});
