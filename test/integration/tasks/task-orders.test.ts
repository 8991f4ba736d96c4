import { createHash, createPublicKey, randomUUID, verify } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { readTask } from "../../../hub/db/queries/task-reads.ts";
import { cancelTask, enqueueTask } from "../../../hub/db/queries/tasks.ts";
import { tasks } from "../../../hub/db/schema/index.ts";
import type { TaskId } from "../../../shared/ids.ts";
import { canonicalJson } from "../../../shared/json.ts";
import type { WireReply } from "../../../shared/protocol/frames.ts";
import { orderSigningText, type SignedOrder } from "../../../shared/tasks/order.ts";
import { GatewayRig, type Identity } from "../../support/gateway-rig.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import { until } from "../../support/until.ts";

const MACHINE_TOKEN = { consumer_key: "ck", token_key: "tk", token_secret: "ts" };
const readToken = vi.fn(async () => MACHINE_TOKEN);

let rig: GatewayRig;
let identity: Identity;
beforeAll(async () => {
  rig = await GatewayRig.start({
    resolveInput: { "node.hw_sync_reseed": async (input) => ({ ...input, machine_token: await readToken() }) },
  });
});
beforeEach(async () => {
  identity = await rig.enrolled();
  readToken.mockReset();
  readToken.mockImplementation(async () => MACHINE_TOKEN);
});
afterAll(() => rig.stop());

const kept = keptAgents(() => rig);
const connect = (as = identity) => kept.connect(as);
const reseed = async () =>
  (
    await rig.inTx((tx) =>
      enqueueTask(tx, {
        nodeId: identity.nodeId,
        type: "node.hw_sync_reseed",
        input: { system_id: "abc", maas_url: "http://rack:5248/MAAS", interval_seconds: 300, machine_token: null },
        idempotencyKey: randomUUID(),
        deadlineSeconds: 3_600,
      }),
    )
  ).task;
const row = async (id: TaskId) => {
  const task = await readTask(rig.db, id);
  if (task === null) throw new Error(`task ${id} is gone`);
  return task;
};
const inState = (id: TaskId, state: Awaited<ReturnType<typeof row>>["state"]) =>
  until(`the task is ${state}`, async () => {
    const task = await row(id);
    return task.state === state ? task : undefined;
  });
const change = (id: TaskId, set: Partial<typeof tasks.$inferInsert>) =>
  rig.db.update(tasks).set(set).where(eq(tasks.id, id));
const past = () => new Date(Date.now() - 1_000);

async function running() {
  const agent = await connect();
  const task = await reseed();
  const { order } = await agent.next("task.offer");
  const ref = { task_id: task.id, epoch: order.epoch };
  agent.send({ type: "task.ack", ...ref, state: "started" });
  await inState(task.id, "running");
  return { agent, task, order, ref };
}

describe("an order", () => {
  it("is signed over all its fields with the key of enrollment, and its hash covers the input that it carries", async () => {
    const { task, order } = await running();
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: rig.signer.publicKey }, format: "jwk" });
    const holds = (one: SignedOrder) =>
      verify(null, Buffer.from(orderSigningText(one)), key, Buffer.from(one.signature, "base64url"));
    expect(holds(order)).toBe(true);
    const other = await rig.enrolled();
    const forgeries: Partial<SignedOrder>[] = [
      { task_id: randomUUID() as TaskId },
      { node_id: other.nodeId },
      { epoch: order.epoch + 1 },
      { type: "node.drain" },
      { input_sha256: "0".repeat(64) },
      { lease_seconds: order.lease_seconds + 1 },
      { not_after: new Date(Date.parse(order.not_after) + 1_000).toISOString() },
    ];
    for (const forged of forgeries) expect([forged, holds({ ...order, ...forged })]).toEqual([forged, false]);

    // The hash in a task order covers the input with the secret that the hub has filled in, not the input in the database.
    expect(order.input).toMatchObject({ machine_token: MACHINE_TOKEN });
    expect(order.input_sha256).toBe(createHash("sha256").update(canonicalJson(order.input)).digest("hex"));
    expect(order.not_after).toBe(task.deadline.toISOString());
  });

  it("is not signed without its input: a task whose input cannot be read is not offered", async () => {
    readToken.mockRejectedValueOnce(new Error("MAAS is away"));
    const sign = vi.spyOn(rig.signer, "sign");
    const agent = await connect();
    const task = await reseed();
    await until("the task is back in the queue", async () => {
      const now = await row(task.id);
      return now.state === "queued" && now.errorCode === "input_unavailable" ? now : undefined;
    });
    await agent.settled();
    expect(sign).not.toHaveBeenCalled();
    sign.mockRestore();
    expect(agent.frames.some((frame) => frame.type === "task.offer")).toBe(false);
    await change(task.id, { notBefore: past() });
    expect((await agent.next("task.offer")).order).toMatchObject({ task_id: task.id, epoch: 2 });
  });

  it("is not signed if the input in the row does not fit the task's type", async () => {
    const task = await reseed();
    await change(task.id, { input: { system_id: "abc", command: "true" } });
    const agent = await connect();
    await until("the task is back in the queue", async () => {
      const now = await row(task.id);
      return now.errorCode === "input_unavailable" ? now : undefined;
    });
    await agent.settled();
    expect(agent.frames.some((frame) => frame.type === "task.offer")).toBe(false);
  });
});

describe("a reply", () => {
  it.each(["sync_failed", "token_missing"])(
    "with the error %s queues the task again until its attempts are used up",
    async (error) => {
      const { agent, task, ref } = await running();
      const reply: WireReply = { ok: false, error, message: "not yet" };
      agent.send({ type: "task.result", ...ref, reply });
      expect(await agent.next("task.result_ack")).toMatchObject(ref);
      expect(await row(task.id)).toMatchObject({ state: "queued", errorCode: error, finishedAt: null });

      await change(task.id, { notBefore: past(), maxAttempts: 2 });
      const again = await agent.next("task.offer");
      expect(again.order.epoch).toBe(2);
      agent.send({ type: "task.result", task_id: task.id, epoch: 2, reply });
      const failed = await inState(task.id, "failed");
      expect(failed).toMatchObject({ errorCode: error, attempts: 2 });
      expect(failed.finishedAt).not.toBeNull();
    },
  );

  it("on a task of another node is acknowledged, so that it is not resent, and changes nothing", async () => {
    const { task, ref } = await running();
    const intruder = await connect(await rig.enrolled());
    const before = await row(task.id);
    const waiting = await rig.waitingWorkflow(`task:${task.id}`);
    intruder.send({ type: "task.result", ...ref, reply: { ok: false, error: "sync_failed", message: "mine" } });
    expect(await intruder.next("task.result_ack")).toMatchObject(ref);
    intruder.send({ type: "task.ack", ...ref, state: "started" });
    intruder.send({ type: "task.rejected", ...ref, reason: "bad_signature", message: "no" });
    await intruder.settled();
    expect(await row(task.id)).toEqual(before);
    expect(await waiting.isDue()).toBe(false);
  });

  it("that is sent twice wakes its workflow once, and the second changes nothing", async () => {
    const { agent, task, ref } = await running();
    const result = { credentials_written: true, timer_active: true, sync_started: true, endpoint: "http://rack/" };
    agent.send({ type: "task.result", ...ref, reply: { ok: true, result } });
    await agent.next("task.result_ack");
    const ended = await inState(task.id, "succeeded");
    expect(ended.result).toEqual(result);
    const waiting = await rig.waitingWorkflow(`task:${task.id}`);
    agent.send({ type: "task.result", ...ref, reply: { ok: true, result } });
    await agent.next("task.result_ack");
    expect(await row(task.id)).toEqual(ended);
    expect(await waiting.isDue()).toBe(false);
  });
});

describe("a deadline", () => {
  it("that passes while an agent holds the task expires it at the end of the lease, and a late result changes nothing", async () => {
    const { agent, task, ref } = await running();
    const waiting = await rig.waitingWorkflow(`task:${task.id}`);
    await change(task.id, { deadline: past(), leaseUntil: past() });
    const expired = await inState(task.id, "expired");
    expect(expired).toMatchObject({ errorCode: "deadline_passed", leaseUntil: null });
    expect(expired.finishedAt).not.toBeNull();
    expect(await waiting.isDue()).toBe(true);
    agent.send({ type: "task.result", ...ref, reply: { ok: false, error: "sync_failed", message: "late" } });
    expect(await agent.next("task.result_ack")).toMatchObject(ref);
    expect(await row(task.id)).toEqual(expired);
  });

  it("that has passed allows no further attempt", async () => {
    const { agent, task, ref } = await running();
    await change(task.id, { deadline: past() });
    agent.send({ type: "task.result", ...ref, reply: { ok: false, error: "sync_failed", message: "again" } });
    expect(await inState(task.id, "failed")).toMatchObject({ errorCode: "sync_failed", attempts: 1 });
  });

  it("that has passed keeps a queued task from being offered", async () => {
    const task = await reseed();
    await change(task.id, { deadline: past() });
    const agent = await connect();
    await inState(task.id, "expired");
    await agent.settled();
    expect(agent.frames.some((frame) => frame.type === "task.offer")).toBe(false);
  });
});

describe("a cancel", () => {
  it("is sent again to an agent that was away when it was requested", async () => {
    const { agent, task, ref } = await running();
    agent.cut();
    await rig.inTx((tx) => cancelTask(tx, task.id));
    const next = await kept.connect(identity, { hello: { journal: [{ ...ref, state: "started" }] } });
    expect(await next.next("task.cancel")).toMatchObject(ref);
    next.send({ type: "task.cancelled", ...ref });
    const ended = await inState(task.id, "cancelled");
    expect(ended).toMatchObject({ errorCode: "cancelled", leaseUntil: null });
  });

  it("takes effect when the lease of a lost agent ends", async () => {
    const { agent, task } = await running();
    agent.cut();
    await rig.inTx((tx) => cancelTask(tx, task.id));
    await change(task.id, { leaseUntil: past() });
    expect(await inState(task.id, "cancelled")).toMatchObject({ errorCode: "cancelled" });
  });
});
