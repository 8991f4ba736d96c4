import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, sql } from "../../hub/db/orm.ts";
import { revokeCertificates } from "../../hub/db/queries/node-certificates.ts";
import { nodes, tasks, type Workflow as WorkflowRow, workflows } from "../../hub/db/schema/index.ts";
import { createNode } from "../../hub/node/create-node.ts";
import { applyForce } from "../../hub/workflows/decommission/force-decommission.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { newNodeId } from "../fakes/hub/orders.ts";
import { type AgentMode, decommission, playDecommissionedAgent } from "../support/decommission-world.ts";
import { setConnected } from "../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { expectExplained, nextVerbOf } from "./converge.ts";
import { Driver, plainly } from "./drive.ts";

/**
 * The agent's task of a drain or a remove can be lost, expire or fail. The verb `resume` or a force continues a drain or a remove whose task failed
 * (state model 8).
 */
let rig: OnboardingRig;
let started = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 1 });
});
afterAll(() => rig?.close());

const db = () => rig.test.database.db;
const ENDS = { drain: "retired", remove: "deleted" } as const;
const STAGE = { drain: "drain_node", remove: "remove_gpuaas_node_record" } as const;

const start = (mode: AgentMode) => decommission(rig, mode, `${mode}-${++started}`);
/** Makes a `Driver` whose simulated agent carries out its queued tasks as long as `answers` returns true. */
const driver = (answers: () => boolean) =>
  new Driver(rig.test, workflowsOf(rig.services), async (id) => {
    if (answers()) await playDecommissionedAgent(rig, id);
  });
const tasksOf = (id: WorkflowId) => db().select().from(tasks).where(eq(tasks.workflowId, id)).orderBy(tasks.createdAt);
const statusOf = async (nodeId: NodeId) => (await db().select().from(nodes).where(eq(nodes.id, nodeId)))[0]?.status;
const force = (id: WorkflowId) =>
  rig.test.database.inTx((tx) =>
    applyForce(tx, workflowsOf(rig.services), { workflowId: id, actor: "ann", role: "admin", reason: "gone for good" }),
  );

/** Returns an SQL condition: the engine has already retried a stage of the workflow. */
const isRetrying = (id: WorkflowId) =>
  sql`exists (select 1 from workflow_events e where e.workflow_id = ${id} and e.status = 'retrying')`;

async function untilQueued(mode: AgentMode, change: (id: WorkflowId, nodeId: NodeId) => Promise<void>) {
  const subject = await start(mode);
  let answers = false;
  let looks = 0;
  const driven = driver(() => answers);
  const at = (row: WorkflowRow) => async (look: Parameters<typeof plainly>[0]) => {
    await plainly(look);
    if (row.stage !== STAGE[mode] || answers) return;
    looks += 1;
    if (looks < 2) return;
    await change(subject.id, subject.nodeId);
    answers = true;
  };
  return { subject, driven, at };
}

describe.each(["drain", "remove"] as const)("the agent's task of a %s", (mode) => {
  it("is queued once, however often the stage looks or an operator resumes", async () => {
    const { subject, driven, at } = await untilQueued(mode, async (id) => {
      for (let clicks = 0; clicks < 3; clicks += 1) await driven.verb(id, "resume");
      expect(await tasksOf(id)).toHaveLength(1);
    });
    expect((await driven.drive(subject.id, at)).status).toBe("completed");
    expect(await tasksOf(subject.id)).toHaveLength(1);
    expect(await statusOf(subject.nodeId)).toBe(ENDS[mode]);
  });

  it("is not touched while the agent holds a live lease", async () => {
    const { subject, driven, at } = await untilQueued(mode, async (id) => {
      await db()
        .update(tasks)
        .set({ state: "running", epoch: 1, leaseUntil: sql`now() + interval '1 hour'` })
        .where(eq(tasks.workflowId, id));
      await driven.verb(id, "resume");
      for (let looks = 0; looks < 3; looks += 1) await plainly(await driven.claim(id));
      expect(await tasksOf(id)).toMatchObject([{ state: "running", epoch: 1 }]);
      await db().update(tasks).set({ state: "offered" }).where(eq(tasks.workflowId, id));
    });
    expect((await driven.drive(subject.id, at)).status).toBe("completed");
    expect(await tasksOf(subject.id)).toHaveLength(1);
  });

  it("is queued again when its lease has expired", async () => {
    const { subject, driven, at } = await untilQueued(mode, async (id) => {
      await db()
        .update(tasks)
        .set({ state: "offered", epoch: 1, attempts: 1, leaseUntil: sql`now() - interval '1 second'` })
        .where(eq(tasks.workflowId, id));
      await driven.verb(id, "resume");
    });
    expect((await driven.drive(subject.id, at)).status).toBe("completed");
    expect(await statusOf(subject.nodeId)).toBe(ENDS[mode]);
  });

  it("is created anew when its row is lost", async () => {
    const { subject, driven, at } = await untilQueued(mode, async (id) => {
      await db().delete(tasks).where(eq(tasks.workflowId, id));
    });
    expect((await driven.drive(subject.id, at)).status).toBe("completed");
    expect(await tasksOf(subject.id)).toHaveLength(1);
  });

  it("is created anew by resume after it expired or failed, and the failure says why", async () => {
    for (const state of ["expired", "failed", "cancelled"] as const) {
      const { subject, driven, at } = await untilQueued(mode, async (id) => {
        await db()
          .update(tasks)
          .set({ state, finishedAt: sql`clock_timestamp()`, errorCode: "x", errorMessage: "the host said no" })
          .where(eq(tasks.workflowId, id));
      });
      // The new tasks that the engine's retries create must fail like the first task.
      const failing = new Driver(rig.test, driven.kinds, async (id) => {
        await db().execute(sql`
          update tasks set state = ${state}, finished_at = clock_timestamp(), error_message = 'the host said no'
          where workflow_id = ${id} and state = 'queued' and epoch = 0 and created_at < now()
            and exists (select 1 from workflow_events e where e.workflow_id = ${id} and e.status = 'retrying')`);
      });
      const end = await failing.drive(subject.id, at);
      expectExplained({ rig, start: () => Promise.reject(new Error("unused")), close: rig.close }, end, [
        "upstream_transient",
        "post_deploy_connectivity_failure",
        "state_ambiguity",
      ]);
      expect(await statusOf(subject.nodeId), "nothing is stranded in removing").toBe(
        mode === "drain" ? "draining" : "retired",
      );
      expect(nextVerbOf(end)).toBe("resume");
      const before = (await tasksOf(subject.id)).length;
      await driven.verb(subject.id, "resume");
      expect((await driver(() => true).drive(subject.id)).status, state).toBe("completed");
      expect(await tasksOf(subject.id)).toHaveLength(before + 1);
      expect(await statusOf(subject.nodeId)).toBe(ENDS[mode]);
    }
  });

  it("fails as agent_unreachable after its deadline only if no agent took it or the agent is gone", async () => {
    const expire = async (attempts: number, connected: boolean) => {
      const { subject, driven, at } = await untilQueued(mode, async (id, nodeId) => {
        await setConnected(rig, nodeId, connected);
        await db()
          .update(tasks)
          .set({ state: "expired", attempts, finishedAt: sql`clock_timestamp()`, errorCode: "deadline_passed" })
          .where(eq(tasks.workflowId, id));
      });
      // Each new task that the engine's retries create expires like the first task, because no agent carries it out.
      const alone = new Driver(rig.test, driven.kinds, async (id) => {
        await db()
          .update(tasks)
          .set({ state: "expired", attempts, finishedAt: sql`clock_timestamp()`, errorCode: "deadline_passed" })
          .where(and(eq(tasks.workflowId, id), eq(tasks.state, "queued"), isRetrying(id)));
      });
      return (await alone.drive(subject.id, at)).failureCode;
    };
    expect(await expire(0, true)).toBe("agent_unreachable");
    expect(await expire(1, false)).toBe("agent_unreachable");
    expect(await expire(1, true)).toBe(mode === "drain" ? "drain_failed" : "uninstall_failed");
  });

  it("fails as agent_unreachable when no agent connects, and continues by resume or by force", async () => {
    for (const how of ["resume", "force"] as const) {
      const subject = await start(mode);
      await setConnected(rig, subject.nodeId, false);
      await db()
        .update(workflows)
        .set({ input: sql`${workflows.input} || '{"agent_wait_seconds": 0}'` })
        .where(eq(workflows.id, subject.id));
      const alone = await driver(() => true).drive(subject.id);
      expect(alone).toMatchObject({ status: "failed_manual_intervention", failureCode: "agent_unreachable" });
      expect(alone.evidence).toMatchObject({ agent_connected: false });
      if (how === "force") await force(subject.id);
      else {
        await setConnected(rig, subject.nodeId, true);
        await driver(() => true).verb(subject.id, "resume");
      }
      const end = await driver(() => true).drive(subject.id);
      expect(end.status, await driver(() => true).story(subject.id)).toBe("completed");
      expect(await statusOf(subject.nodeId)).toBe(ENDS[mode]);
    }
  });

  it("is not forced while a connected agent works on it", async () => {
    const { subject, driven, at } = await untilQueued(mode, async (id) => {
      await expect(force(id)).rejects.toMatchObject({ code: "verb_not_allowed" });
    });
    expect((await driven.drive(subject.id, at)).status).toBe("completed");
  });

  it("belongs to one operation at a time, even after that operation failed", async () => {
    const subject = await start(mode);
    const again = rig.test.database.inTx((tx) =>
      startDecommission(
        tx,
        subject.nodeId,
        { mode: "drain", reason: "again", agent_wait_seconds: 0, deadline_seconds: 0, force: false },
        "bob",
      ),
    );
    await expect(again).rejects.toMatchObject({ code: "operation_exists" });
  });
});

it("a remove that a connected agent refuses is forced after its certificates are revoked, as the next action says", async () => {
  const subject = await start("remove");
  const refusing = new Driver(rig.test, workflowsOf(rig.services), async (id) => {
    await db()
      .update(tasks)
      .set({ state: "failed", attempts: 1, finishedAt: sql`clock_timestamp()`, errorCode: "not_removable" })
      .where(and(eq(tasks.workflowId, id), eq(tasks.state, "queued")));
  });
  const refused = await refusing.drive(subject.id);
  expect(refused).toMatchObject({ failureCode: "uninstall_failed" });
  expect(refused.nextAction).toContain("revoke the node's certificates");
  await force(subject.id);
  expect((await refusing.drive(subject.id)).failureCode, "its word still counts").toBe("uninstall_failed");
  await rig.test.database.inTx((tx) => revokeCertificates(tx, subject.nodeId, "all", "it cannot be uninstalled"));
  // The test acts as the hub's gateway, which ends the agent's session when the node's certificates are revoked.
  await setConnected(rig, subject.nodeId, false);
  await force(subject.id);
  expect((await refusing.drive(subject.id)).status).toBe("completed");
  expect(await statusOf(subject.nodeId)).toBe("deleted");
});

describe("a remove whose uninstall the hub has accepted", () => {
  async function accepted() {
    const subject = await start("remove");
    const driven = driver(() => false);
    for (let looks = 0; looks < 2; looks += 1) await driven.step(subject.id);
    await playDecommissionedAgent(rig, subject.id);
    return { driven, ...subject };
  }

  it.each(["cancel", "restart_clean"] as const)("continues by resume after a %s that came too late", async (verb) => {
    const { driven, id, nodeId } = await accepted();
    await driven.verb(id, verb);
    const end = await driven.drive(id);
    expect(end).toMatchObject({ status: "failed_manual_intervention", failureCode: "uninstall_accepted" });
    expect(end.nextAction).toContain("resume to finish");
    expect(nextVerbOf(end)).toBe("resume");
    await driven.verb(id, "resume");
    expect((await driven.drive(id)).status, await driven.story(id)).toBe("completed");
    expect(await statusOf(nodeId)).toBe("deleted");
  });

  it("fails as uninstall_accepted after a late cancel, not with its earlier failure", async () => {
    const { driven, id } = await accepted();
    await driven.verb(id, "mark_manual_intervention");
    await driven.verb(id, "cancel");
    const end = await driven.drive(id);
    expect(end).toMatchObject({ failureCode: "uninstall_accepted" });
    expect(nextVerbOf(end)).toBe("resume");
  });
});

it("a host that never enrolled is removed without an agent, and its name is free", async () => {
  const id = newNodeId();
  const facts = { sku: "s", gpusTotal: 8, regionCode: "r1", onboardingMode: "manual", owner: "admin_api" } as const;
  const { inTx } = rig.test.database;
  const created = await inTx(async (tx) => {
    await createNode(tx, { id, hostname: "never-came", siteId: rig.siteId, ...facts });
    return startDecommission(tx, id, { mode: "remove", reason: "not bought", agent_wait_seconds: 900 }, "ann");
  });
  expect((await driver(() => false).drive(created.decommission_id, () => plainly)).status).toBe("completed");
  expect(await statusOf(id)).toBe("deleted");
  expect(await tasksOf(created.decommission_id)).toEqual([]);
  await inTx((tx) => createNode(tx, { id: newNodeId(), hostname: "never-came", siteId: rig.siteId, ...facts }));
});
