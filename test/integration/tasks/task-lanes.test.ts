import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readTask } from "../../../hub/db/queries/task-reads.ts";
import { enqueueTask } from "../../../hub/db/queries/tasks.ts";
import { domainEvents, type Task, tasks, workflows } from "../../../hub/db/schema/index.ts";
import { type TaskId, WorkflowId } from "../../../shared/ids.ts";
import type { TaskInput, TaskType } from "../../../shared/tasks/index.ts";
import { GatewayRig, type Identity } from "../../support/gateway-rig.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import type { SocketAgent } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

const INPUTS = {
  "node.drain": { reason: "test", deadline_seconds: 3_600, force: false },
  "node.undrain": { reason: "test" },
  "node.uninstall": { reason: "test" },
  "node.heartbeat_check": { nonce: "n" },
} as const;

let rig: GatewayRig;
let identity: Identity;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
beforeEach(async () => {
  identity = await rig.enrolled();
});
afterAll(() => rig.stop());

const kept = keptAgents(() => rig);
const connect = () => kept.connect(identity);
/** Creates a task of the given type. With `heldBack`, the hub may offer the created task only after an hour. */
const enqueue = (type: keyof typeof INPUTS, heldBack = false): Promise<TaskId> =>
  rig.inTx(async (tx) => {
    const { task } = await enqueueTask(tx, {
      nodeId: identity.nodeId,
      type: type as TaskType,
      input: INPUTS[type] as TaskInput,
      idempotencyKey: randomUUID(),
      deadlineSeconds: 3_600,
    });
    if (heldBack)
      await tx.update(tasks).set({ notBefore: sql`now() + interval '1 hour'` }).where(eq(tasks.id, task.id));
    return task.id;
  });
const inState = (id: TaskId, state: Task["state"]) =>
  until(`the task is ${state}`, async () => {
    const task = await readTask(rig.db, id);
    return task?.state === state ? task : undefined;
  });
async function running(agent: SocketAgent, type: keyof typeof INPUTS) {
  const id = await enqueue(type);
  const { order } = await agent.next("task.offer");
  expect(order.task_id).toBe(id);
  agent.send({ type: "task.ack", task_id: id, epoch: order.epoch, state: "started" });
  await inState(id, "running");
  return { task_id: id, epoch: order.epoch };
}
const CHECKED = { nonce: "n", boot_id: "boot-1", uptime_seconds: 5, agent_version: "1.0.0" };

describe("the two lanes of tasks, `work` and `look`,", () => {
  it("hold one task each, so a check does not wait behind a long drain", async () => {
    const agent = await connect();
    const drain = await running(agent, "node.drain");
    const undrain = await enqueue("node.undrain");
    const check = await running(agent, "node.heartbeat_check");
    const second = await enqueue("node.heartbeat_check");
    await agent.settled();
    expect([(await readTask(rig.db, undrain))?.state, (await readTask(rig.db, second))?.state]).toEqual([
      "queued",
      "queued",
    ]);
    agent.send({ type: "task.result", ...check, reply: { ok: true, result: CHECKED } });
    await inState(check.task_id, "succeeded");
    expect((await agent.next("task.offer")).order.task_id).toBe(second);
    expect((await readTask(rig.db, undrain))?.state).toBe("queued");
    agent.send({
      type: "task.result",
      ...drain,
      reply: { ok: true, result: { drained: true, sessions_closed: 0, remaining_users: [] } },
    });
    expect((await agent.next("task.offer")).order.task_id).toBe(undrain);
  });

  it("treat a task of an unknown type as one that changes the host", async () => {
    const agent = await connect();
    const drain = await running(agent, "node.drain");
    await rig.db.update(tasks).set({ type: "node.of_a_newer_hub" }).where(eq(tasks.id, drain.task_id));
    const undrain = await enqueue("node.undrain");
    await running(agent, "node.heartbeat_check");
    expect((await readTask(rig.db, undrain))?.state).toBe("queued");
  });
});

describe("a task whose deadline passes before an agent took it", () => {
  const expire = async (id: TaskId) => {
    await rig.db.update(tasks).set({ deadline: sql`now()` }).where(eq(tasks.id, id));
    return (await inState(id, "expired")).errorMessage;
  };

  it("says that its agent was busy with a long task", async () => {
    await running(await connect(), "node.drain");
    expect(await expire(await enqueue("node.undrain"))).toBe(
      "The agent was still working on node.drain, and runs such tasks one after the other",
    );
  });

  it("says that its agent was connected but not offered the task in time", async () => {
    const agent = await connect();
    const id = await enqueue("node.undrain", true);
    await agent.settled();
    expect(await expire(id)).toBe("The agent is connected, but did not get the task before its deadline");
    expect(agent.frames.filter(({ type }) => type === "task.offer")).toEqual([]);
  });

  it("says that no agent was connected", async () => {
    expect(await expire(await enqueue("node.undrain"))).toBe(
      "No agent of the node was connected at the deadline of the task",
    );
  });
});

describe("a destructive task", () => {
  const uninstall = async (error: string) => {
    const agent = await connect();
    const ref = await running(agent, "node.uninstall");
    agent.send({ type: "task.result", ...ref, reply: { ok: false, error, message: "m" } });
    await agent.next("task.result_ack");
    return readTask(rig.db, ref.task_id);
  };

  it.each(["handler_crashed", "interrupted"])("that may have acted (%s) is never run again", async (error) => {
    expect(await uninstall(error)).toMatchObject({ state: "failed", errorCode: error, attempts: 1 });
  });

  it("that was not started is queued again", async () => {
    expect(await uninstall("not_started")).toMatchObject({ state: "queued", errorCode: "not_started" });
  });

  it("takes no effect when the hub takes the result of its plan", async () => {
    const agent = await connect();
    const accepts = async (input: { reason: string; plan?: true }) => {
      const { task } = await rig.inTx((tx) =>
        enqueueTask(tx, {
          nodeId: identity.nodeId,
          type: "node.uninstall",
          input,
          idempotencyKey: randomUUID(),
          deadlineSeconds: 600,
        }),
      );
      const { order } = await agent.next("task.offer");
      const ref = { task_id: task.id, epoch: order.epoch };
      agent.send({ type: "task.result", ...ref, reply: { ok: true, result: { removes: [] } } });
      return (await agent.next("task.result_ack")).accepted;
    };
    expect(await accepts({ reason: "test", plan: true })).toBeUndefined();
    expect(await accepts({ reason: "test" })).toBe(true);
  });
});

it("progress of a task has an event about the task's operation, once in some seconds", async () => {
  const agent = await connect();
  const ref = await running(agent, "node.heartbeat_check");
  const id = WorkflowId.parse(randomUUID());
  const input = { node_id: identity.nodeId };
  await rig.db.insert(workflows).values({ id, kind: "drain", status: "running", stage: "drain", input });
  await rig.db.update(tasks).set({ workflowId: id }).where(eq(tasks.id, ref.task_id));
  const told = () =>
    rig.db
      .select()
      .from(domainEvents)
      .where(eq(domainEvents.subject, `decommissions/${id}`));
  for (const seq of [0, 1, 1]) agent.send({ type: "task.progress", ...ref, seq, progress: null });
  await agent.settled();
  const data = { operation_id: id, ...input, stage: "drain", wait_reason: null };
  expect(await told()).toMatchObject([{ type: "operation.progressed", data }]);
  await rig.db.execute(sql`update workflows set told_at = now() - interval '6 seconds' where id = ${id}`);
  agent.send({ type: "task.progress", ...ref, seq: 2, progress: null });
  await agent.settled();
  expect(await told()).toHaveLength(2);
});
