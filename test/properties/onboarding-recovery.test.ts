import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, inArray, sql } from "../../hub/db/orm.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import {
  enrollmentTokens,
  maasSiteWatches,
  tasks,
  type Workflow as WorkflowRow,
  workflows,
} from "../../hub/db/schema/index.ts";
import { observeMachine } from "../../hub/watcher/observe.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { ProfileId, WorkflowId } from "../../shared/ids.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { Driver } from "./drive.ts";
import { machineOf } from "./scenarios.ts";

let rig: OnboardingRig;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 20 });
});
afterAll(() => rig?.close());
const db = () => rig.test.database.db;
const start = (profileId?: ProfileId) => rig.start(++boxes, profileId);

const driverWith = (play: (row: WorkflowRow) => Promise<unknown>): Driver =>
  new Driver(rig.test, workflowsOf(rig.services), async (id) => {
    const row = await readWorkflow(db(), id);
    if (row !== null) await play(row);
  });

const tasksOf = (id: WorkflowId) =>
  db()
    .select()
    .from(tasks)
    .where(and(eq(tasks.workflowId, id), eq(tasks.type, "node.hw_sync_reseed")));
const isQueued = (id: WorkflowId) => and(eq(tasks.workflowId, id), inArray(tasks.state, ["queued", "offered"]));
const age = (id: WorkflowId, seconds: number) =>
  db()
    .update(workflows)
    .set({
      stageEnteredAt: sql`${workflows.stageEnteredAt} - make_interval(secs => ${seconds})`,
      stageDeadline: sql`${workflows.stageDeadline} - make_interval(secs => ${seconds})`,
    })
    .where(eq(workflows.id, id));
const endTime = (id: WorkflowId) =>
  db().update(workflows).set({ stageDeadline: sql`now() - interval '1 second'` }).where(eq(workflows.id, id));

/** Simulates an agent that does all its tasks, while MAAS never records a hardware sync. */
async function playWithoutSync(row: WorkflowRow): Promise<void> {
  const machine = machineOf(rig, row);
  const before = machine?.lastSync;
  await rig.playAgent(row.id);
  if (machine !== undefined && before !== undefined) machine.lastSync = before;
}

describe("a machine that failed its hardware tests", () => {
  const failTests = async (): Promise<{ id: WorkflowId; driver: Driver; machine: Machine }> => {
    const { id } = await start();
    let failed: Machine | undefined;
    const driver = driverWith(async (row) => {
      const machine = machineOf(rig, row);
      if (row.stage === "wait_for_ready" && machine !== undefined && failed === undefined) {
        failed = machine;
        rig.maas.sim.region.forceStatus(machine, STATUS.failed_testing);
      }
      await rig.playAgent(row.id);
    });
    expect(await driver.drive(id)).toMatchObject({ failureClass: "hardware_mismatch", failureCode: "testing_failed" });
    if (failed === undefined) throw new Error("no machine failed");
    return { id, driver, machine: failed };
  };
  const commissioned = ({ systemId }: Machine) => rig.maas.sim.region.state.counters[systemId]?.["commission"];
  const testedAgain = async (id: WorkflowId, driver: Driver) =>
    (await driver.story(id)).includes("Commissioning started again");

  it.each(["resume", "retry", "rerun", "restart_clean"] as const)("is tested again after %s", async (verb) => {
    const { id, driver, machine } = await failTests();
    await driver.verb(id, verb);
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect([commissioned(machine), await testedAgain(id, driver)]).toEqual([2, true]);
  });

  it("continues without new tests when a person has overridden the failure in MAAS", async () => {
    const { id, driver, machine } = await failTests();
    rig.maas.sim.region.forceStatus(machine, STATUS.ready);
    await driver.verb(id, "resume");
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect([commissioned(machine), await testedAgain(id, driver)]).toEqual([1, false]);
  });
});

describe("a site whose MAAS refuses the token", () => {
  it("fails each waiting onboarding as maas_token_rejected, although the watcher looked a moment ago", async () => {
    const { id } = await start();
    let refuses = false;
    const driver = driverWith(async (row) => {
      const machine = machineOf(rig, row);
      if (row.stage !== "wait_for_ready" || machine === undefined || refuses) return;
      refuses = true;
      rig.maas.sim.region.forceStatus(machine, STATUS.commissioning);
      const seen = await (await rig.services.maas(rig.siteId)).readMachine(machine.systemId);
      if (seen !== null) await observeMachine(rig.services.inTx, rig.siteId, seen);
      const refused = { lastPollAt: new Date(), lastErrorCode: "unauthorized" };
      await db()
        .insert(maasSiteWatches)
        .values({ siteId: rig.siteId, ...refused })
        .onConflictDoUpdate({ target: maasSiteWatches.siteId, set: refused });
      rig.maas.sim.faults.add({ match: {}, kind: "status", code: 401, body: "Authorization Error", times: 1e6 });
    });
    const end = await driver.drive(id);
    rig.maas.sim.faults.clear();
    expect(end).toMatchObject({ stage: "wait_for_ready", failureCode: "maas_token_rejected" });
    expect(end.nextAction).toContain("credentials");
    await db().delete(maasSiteWatches).where(eq(maasSiteWatches.siteId, rig.siteId));
  });
});

describe("seeding hardware sync", () => {
  const SEED = "ensure_hardware_sync_configured";
  const failSeeds = (id: WorkflowId) =>
    db()
      .update(tasks)
      .set({ state: "failed", errorCode: "io_error", errorMessage: "the disk is full", finishedAt: sql`now()` })
      .where(isQueued(id));

  it.each(["resume", "retry", "adopt", "rerun"] as const)("queues a new task for the agent after %s", async (verb) => {
    const { id } = await start();
    let full = true;
    const driver = driverWith(async (row) => {
      if (full) await failSeeds(row.id);
      await rig.playAgent(row.id);
    });
    expect(await driver.drive(id)).toMatchObject({ stage: SEED, failureCode: "reseed_failed", attempt: 3 });
    expect(await tasksOf(id)).toHaveLength(3);
    full = false;
    await driver.verb(id, verb);
    const end = await driver.drive(id);
    expect(end.status, await driver.story(id)).toBe(verb === "adopt" ? "reconciled" : "completed");
    expect(await tasksOf(id)).toHaveLength(4);
  });

  it("adopts a seed that the agent finished just before the timeout", async () => {
    const { id } = await start();
    let late = false;
    const driver = driverWith(async (row) => {
      if (row.stage !== SEED || late) return rig.playAgent(row.id);
      const queued = (await tasksOf(row.id)).length > 0;
      await rig.playAgent(row.id);
      if (!queued) return;
      late = true;
      await endTime(row.id);
    });
    const end = await driver.drive(id);
    expect(late).toBe(true);
    expect(end.status, await driver.story(id)).toBe("completed");
  });
});

describe("waiting for the first sync", () => {
  it("seeds the sync again after a retry", async () => {
    const HEALTH = "wait_for_hardware_sync_healthy";
    const { id } = await start(await rig.addProfile("often", { hardware_sync_interval_seconds: 300 }));
    let looks = 0;
    const driver = driverWith(async (row) => {
      await playWithoutSync(row);
      if (row.stage !== HEALTH || row.status !== "running" || row.waitReason === null) return;
      looks += 1;
      // The first two runs of `wait_for_hardware_sync_healthy` come late enough for a further task that rewrites hardware sync's files. The third run
      // of `wait_for_hardware_sync_healthy` comes after the stage's deadline.
      await (looks <= 2 ? age(row.id, 310) : endTime(row.id));
    });
    expect(await driver.drive(id)).toMatchObject({ stage: HEALTH, failureCode: "sync_unhealthy" });
    expect(await tasksOf(id)).toHaveLength(3);
    looks = 0;
    await driver.verb(id, "retry");
    expect(await driver.drive(id)).toMatchObject({ stage: HEALTH, failureCode: "sync_unhealthy" });
    expect(await tasksOf(id)).toHaveLength(5);
  });
});

describe("waiting for the agent", () => {
  it("extends the enrollment token again after a resume, at most twice each time", async () => {
    const ENROLL = "wait_for_agent_enrollment";
    const { id, nodeId } = await start(await rig.addProfile("without-sync", { require_hw_sync: false }));
    const ofNode = eq(enrollmentTokens.nodeId, nodeId);
    const lives: boolean[] = [];
    const driver = driverWith(async (row) => {
      if (row.stage !== ENROLL || row.status !== "running") return;
      if (row.waitReason !== null) {
        const [token] = await db()
          .select({ alive: sql<boolean>`${enrollmentTokens.expiresAt} > now()` })
          .from(enrollmentTokens)
          .where(ofNode);
        lives.push(token?.alive ?? false);
      }
      await db().update(enrollmentTokens).set({ expiresAt: sql`now() - interval '1 second'` }).where(ofNode);
      if (lives.length % 3 === 0 && lives.length > 0) await endTime(row.id);
    });
    expect(await driver.drive(id)).toMatchObject({ stage: ENROLL, failureCode: "enrollment_timeout" });
    await driver.verb(id, "resume");
    lives.length = 0;
    expect(await driver.drive(id)).toMatchObject({ stage: ENROLL, failureCode: "enrollment_timeout" });
    expect(lives).toEqual([true, true, false]);
  });
});
