import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { claimTasks, endDelivery, type TaskEnding } from "../../hub/db/queries/tasks.ts";
import { nodes, type Task, tasks, workflowSubjects, workflows } from "../../hub/db/schema/index.ts";
import { moveNode } from "../../hub/node/move-node.ts";
import { applyForce } from "../../hub/workflows/decommission/force-decommission.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { decommission } from "../support/decommission-world.ts";
import { setConnected } from "../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { Driver } from "./drive.ts";

/**
 * A drain of a node closes its host for logins, and a cancel of the drain opens the host. After a cancelled drain, the agent must have closed the
 * host for logins before it opens the host.
 */
let rig: OnboardingRig;
let started = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 1 });
});
afterAll(() => rig?.close());

const db = () => rig.test.database.db;
const driver = () => new Driver(rig.test, workflowsOf(rig.services), async () => undefined);
const statusOf = async (nodeId: NodeId) => (await db().select().from(nodes).where(eq(nodes.id, nodeId)))[0]?.status;

const force = (id: WorkflowId) =>
  rig.test.database.inTx((tx) =>
    applyForce(tx, workflowsOf(rig.services), { workflowId: id, actor: "ann", role: "admin", reason: "end them" }),
  );

async function drainAgain(nodeId: NodeId): Promise<WorkflowId> {
  const request = {
    mode: "drain",
    reason: "again",
    agent_wait_seconds: 900,
    deadline_seconds: 0,
    force: false,
  } as const;
  const created = await rig.test.database.inTx((tx) => startDecommission(tx, nodeId, request, "ann"));
  return created.decommission_id;
}

async function untilTask(driven: Driver, id: WorkflowId): Promise<void> {
  for (let looks = 0; looks < 10; looks += 1) {
    const open = await db().select().from(tasks).where(eq(tasks.workflowId, id));
    if (open.some((task) => task.type === "node.drain" && task.state === "queued")) return;
    await driven.step(id);
  }
  throw new Error(`no drain was queued\n${await driven.story(id)}`);
}

async function offered(nodeId: NodeId): Promise<Task> {
  const [task] = await claimTasks(db(), [nodeId]);
  if (task === undefined) throw new Error("nothing is offered");
  return task;
}
const ends = (task: Task, ending: TaskEnding) => endDelivery(db(), task.id, task.nodeId, task.epoch, ending);
const DRAINED = { state: "succeeded", result: { drained: true, sessions_closed: 0, remaining_users: [] } } as const;
const CANCELLED = { state: "cancelled", errorCode: "cancelled", errorMessage: "Cancelled before it ended" } as const;
const UNMARK_FAILED = {
  state: "queued",
  errorCode: "unmark_failed",
  errorMessage: "The file system is read-only",
  delaySeconds: 3_600,
} as const;
const noPauses = (nodeId: NodeId) => db().update(tasks).set({ notBefore: sql`now()` }).where(eq(tasks.nodeId, nodeId));

async function start() {
  const driven = driver();
  const subject = await decommission(rig, "drain", `drained-again-${++started}`);
  await untilTask(driven, subject.id);
  return { driven, ...subject };
}

/** Cancels a drain that the agent had begun. The undrain task of the cancelled drain has failed once and waits for its retry. */
async function withUndrainThatWaits() {
  const subject = await start();
  const { driven, id, nodeId } = subject;
  const drain = await offered(nodeId);
  await driven.verb(id, "cancel");
  await driven.drive(id);
  await ends(drain, CANCELLED);
  const undrain = await offered(nodeId);
  expect(undrain.type).toBe("node.undrain");
  await ends(undrain, UNMARK_FAILED);
  return subject;
}

describe("an undrain that waits for its retry", () => {
  it("is dropped when the node is drained anew, so it never opens a retired host", async () => {
    const { driven, nodeId } = await withUndrainThatWaits();
    const again = await drainAgain(nodeId);
    await untilTask(driven, again);
    await ends(await offered(nodeId), DRAINED);
    expect((await driven.drive(again)).status).toBe("completed");
    await noPauses(nodeId);
    expect(await claimTasks(db(), [nodeId]), "nothing is left that would open the host").toEqual([]);
    expect(await statusOf(nodeId)).toBe("retired");
  });

  it("is queued anew when the new drain is cancelled before its agent heard of it", async () => {
    const { driven, nodeId } = await withUndrainThatWaits();
    const again = await drainAgain(nodeId);
    await untilTask(driven, again);
    await driven.verb(again, "cancel");
    expect((await driven.drive(again)).status).toBe("cancelled");
    expect((await offered(nodeId)).type).toBe("node.undrain");
  });
});

it("a cancelled remove leaves the retired host closed", async () => {
  const { driven, id, nodeId } = await start();
  await ends(await offered(nodeId), DRAINED);
  await driven.drive(id);
  const request = { mode: "remove", reason: "old", agent_wait_seconds: 900 } as const;
  const remove = await rig.test.database.inTx((tx) => startDecommission(tx, nodeId, request, "ann"));
  for (let looks = 0; looks < 2; looks += 1) await driven.step(remove.decommission_id);
  await driven.verb(remove.decommission_id, "cancel");
  expect((await driven.drive(remove.decommission_id)).status).toBe("cancelled");
  expect(await statusOf(nodeId)).toBe("retired");
  expect(await claimTasks(db(), [nodeId])).toEqual([]);
});

describe("a forced drain", () => {
  const FORCED = { reason: "old", deadline_seconds: 0, force: true };

  it("replaces the drain that a connected agent works on, and tells users to log out at once", async () => {
    const { driven, id, nodeId } = await start();
    const patient = await offered(nodeId);
    expect(patient.input).toMatchObject({ force: false });
    await driven.verb(id, "mark_manual_intervention");
    await force(id);
    for (let looks = 0; looks < 3; looks += 1) await driven.step(id);
    await ends(patient, CANCELLED);
    const forced = await offered(nodeId);
    expect(forced).toMatchObject({ type: "node.drain", input: FORCED });
    // Further runs of the drain's stage do not replace the task of a forced drain.
    for (let looks = 0; looks < 3; looks += 1) await driven.step(id);
    await ends(forced, DRAINED);
    expect((await driven.drive(id)).status).toBe("completed");
    expect(await statusOf(nodeId)).toBe("retired");
  });

  it("completes while the agent is away, and closes the host when the agent comes back", async () => {
    const { driven, id, nodeId } = await start();
    const patient = await offered(nodeId);
    await setConnected(rig, nodeId, false);
    await force(id);
    expect((await driven.drive(id)).status).toBe("completed");
    expect(await statusOf(nodeId)).toBe("retired");
    // When the agent connects again, the hub first cancels the agent's old drain task, and the agent opens the host. After the agent has opened the
    // host, the hub offers the agent the task of the forced drain.
    await ends(patient, CANCELLED);
    const forced = await offered(nodeId);
    expect(forced).toMatchObject({ type: "node.drain", input: FORCED });
    await ends(forced, DRAINED);
    expect(await claimTasks(db(), [nodeId])).toEqual([]);
  });
});

it("the cancel of a drain restores the status from before a lost operation", async () => {
  const { driven, id, nodeId } = await start();
  await driven.verb(id, "cancel");
  await driven.drive(id);
  await rig.test.database.inTx((tx) =>
    moveNode(tx, nodeId, { from: "offline", to: "quarantined", owner: "cleanup" }, "It is ill"),
  );
  const first = await drainAgain(nodeId);
  await untilTask(driven, first);
  // No code of the hub leaves a state in which the drain has ended but its node is still `draining`.
  await db().update(workflows).set({ status: "cancelled" }).where(eq(workflows.id, first));
  await db().delete(workflowSubjects).where(eq(workflowSubjects.workflowId, first));
  expect(await statusOf(nodeId)).toBe("draining");
  const second = await drainAgain(nodeId);
  await untilTask(driven, second);
  await driven.verb(second, "cancel");
  expect((await driven.drive(second)).status).toBe("cancelled");
  expect(await statusOf(nodeId)).toBe("quarantined");
});
