import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, like, sql } from "../../hub/db/orm.ts";
import { takeDeploySlot } from "../../hub/db/queries/deploy-slots.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { type Workflow as WorkflowRow, workflowSubjects, workflows } from "../../hub/db/schema/index.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { ProfileId, WorkflowId } from "../../shared/ids.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { Driver, plainly } from "./drive.ts";
import { machineOf } from "./scenarios.ts";

let rig: OnboardingRig;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 16 });
});
afterAll(() => rig?.close());
const db = () => rig.test.database.db;
const start = (profileId?: ProfileId) => rig.start(++boxes, profileId);

const driverWith = (play: (row: WorkflowRow) => Promise<unknown>): Driver =>
  new Driver(rig.test, workflowsOf(rig.services), async (id) => {
    const row = await readWorkflow(db(), id);
    if (row !== null) await play(row);
  });
const ageUndoing = (id: WorkflowId, seconds: number) =>
  db()
    .update(workflows)
    .set({
      compensation: sql`jsonb_set(${workflows.compensation}, '{startedAt}',
        to_jsonb((${workflows.compensation} ->> 'startedAt')::timestamptz - make_interval(secs => ${seconds})))`,
    })
    .where(and(eq(workflows.id, id), sql`${workflows.compensation} ->> 'startedAt' is not null`));
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

describe("a place among the parallel deploys of a profile", () => {
  const DEPLOY = "deploy_via_maas";
  const placesOf = (id: WorkflowId) =>
    db()
      .select()
      .from(workflowSubjects)
      .where(and(eq(workflowSubjects.workflowId, id), like(workflowSubjects.subject, "deploy-slot:%")));
  const onePlace = (name: string) => rig.addProfile(name, { deploy_max_parallel: 1 });
  async function takenBySomebody(profileId: ProfileId): Promise<{ free(): Promise<unknown> }> {
    const subject = `deploy-slot:${profileId}/1`;
    const other = await start();
    await db().insert(workflowSubjects).values({ subject, workflowId: other.id });
    return { free: () => db().delete(workflowSubjects).where(eq(workflowSubjects.subject, subject)) };
  }

  it("is found at once by every host of a batch while places are left", async () => {
    const profileId = await rig.addProfile("roomy", { deploy_max_parallel: 4 });
    const hosts = [await start(profileId), await start(profileId), await start(profileId), await start(profileId)];
    const taken = await Promise.all(
      hosts.map(({ id }) => rig.test.database.inTx((tx) => takeDeploySlot(tx, id, profileId, 4))),
    );
    expect(taken).toEqual([true, true, true, true]);
    const late = await start(profileId);
    expect(await rig.test.database.inTx((tx) => takeDeploySlot(tx, late.id, profileId, 4))).toBe(false);
    await db()
      .delete(workflowSubjects)
      .where(like(workflowSubjects.subject, `deploy-slot:${profileId}/%`));
  });

  it("is not taken by a run that has lost its lease on the row", async () => {
    const { id } = await start(await onePlace("fenced"));
    const driver = driverWith(async () => undefined);
    let lost = false;
    await driver.drive(id, (row) => async (look) => {
      if (row.stage !== DEPLOY || lost) return plainly(look);
      lost = true;
      await driver.claim(id);
      await expect(look.run()).resolves.toBeDefined();
      expect(await placesOf(id)).toEqual([]);
      await driver.verb(id, "mark_manual_intervention");
    });
    expect(lost).toBe(true);
  });

  it("is given back by a workflow that restarts clean", async () => {
    const { id } = await start(await onePlace("restarted"));
    const driver = driverWith(async (row) => {
      await rig.playAgent(row.id);
      // MAAS shows within half a minute what a deploy call has done whose answer was lost.
      if (row.status === "compensating") await ageUndoing(row.id, 60);
    });
    let held = 0;
    let restarted = false;
    const end = await driver.drive(id, (row) => async (look) => {
      if (row.status === "pending" && restarted) expect(await placesOf(id)).toEqual([]);
      await plainly(look);
      if (restarted) return;
      held = (await placesOf(id)).length;
      if (held === 0) return;
      restarted = true;
      await driver.verb(id, "restart_clean");
    });
    expect(restarted).toBe(true);
    expect(held).toBe(1);
    expect(end.status, await driver.story(id)).toBe("completed");
  });

  it("may be waited for longer than a deploy may take, and the deploy's own time starts when the place is free", async () => {
    const profileId = await onePlace("patient");
    const taken = await takenBySomebody(profileId);
    const { id } = await start(profileId);
    let waited = 0;
    const driver = driverWith(async (row) => {
      await rig.playAgent(row.id);
      if (row.stage !== DEPLOY || row.waitReason === null || waited > 1) return;
      waited += 1;
      if (waited === 1) await age(row.id, 2 * 7200);
      else await taken.free();
    });
    const end = await driver.drive(id);
    expect(waited).toBe(2);
    expect(end.status, await driver.story(id)).toBe("completed");
  });

  it("fails as deploy_place_timeout when no place becomes free, and leaves the machine Ready", async () => {
    const profileId = await onePlace("impatient");
    const taken = await takenBySomebody(profileId);
    const { id } = await start(profileId);
    const driver = driverWith(async (row) => {
      await rig.playAgent(row.id);
      if (row.stage === DEPLOY && row.waitReason !== null) await endTime(row.id);
    });
    const end = await driver.drive(id);
    expect(end).toMatchObject({
      status: "failed_retryable",
      stage: DEPLOY,
      failureClass: "upstream_transient",
      failureCode: "deploy_place_timeout",
    });
    expect(end.nextAction).toContain("deploy_max_parallel");
    expect(machineOf(rig, end)?.status).toBe(4);
    await taken.free();
    await driver.verb(id, "retry");
    const again = driverWith((row) => rig.playAgent(row.id));
    expect((await again.drive(id)).status, await driver.story(id)).toBe("completed");
  });
});
