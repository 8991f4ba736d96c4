/** A host is installed anew for the tenant of its instance, and what becomes of both when the tenant leaves or something fails meanwhile (decision N11). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { readHistories } from "../../hub/db/queries/machine-pages.ts";
import { readBaseline } from "../../hub/db/queries/node-baselines.ts";
import { allocations, nodeConditions, nodeHealthOverrides, nodes } from "../../hub/db/schema/index.ts";
import { historyOf } from "../../hub/node/machine-history.ts";
import { requestInstancePower } from "../../hub/power/request-power.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { resultOnCleanHost } from "../support/agent-results.ts";
import { setConnected } from "../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { UNRECORDED_ALLOCATIONS } from "../support/tenancy-records.ts";
import { failTheDeploy, grantsOf, nodeOf, orderReinstall, refusalOf, shown, turnsOver } from "./reinstalled.ts";
import { Tenancy } from "./tenancy.ts";

const ANN = { name: "ann", tenant: null };
let rig: OnboardingRig;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 16 });
});
afterAll(() => rig?.close());
afterEach(async () => {
  rig.maas.sim.faults.clear();
  expect((await db().execute(sql.raw(UNRECORDED_ALLOCATIONS))).rows).toEqual([]);
});

const db = () => rig.services.db;
const inTx: OnboardingRig["services"]["inTx"] = (fn) => rig.services.inTx(fn);
const begin = async (granted = true): Promise<Tenancy> => Tenancy.begin(rig, ++boxes, granted);
const order = orderReinstall;
const refusal = (tenancy: Tenancy): Promise<string> => refusalOf(order(tenancy));
/** The host of a new system reports what a ready host reports. */
async function isReady(tenancy: Tenancy): Promise<void> {
  const { generation = 0 } = (await nodeOf(tenancy)) ?? {};
  await db().update(nodeConditions).set({ generation }).where(eq(nodeConditions.nodeId, tenancy.nodeId));
  expect(await shown(tenancy)).toMatchObject({ id: tenancy.id, status: "Ready" });
}
const historyOfNode = async ({ nodeId }: Tenancy) =>
  historyOf(nodeId, await readHistories(db(), [nodeId])).map(({ status }) => status);
describe("a reinstall", () => {
  it("gives the tenant the same instance on a new system, and the later turnover cleans it by a reimage", async () => {
    const tenancy = await begin();
    const before = await tenancy.now();
    await setConnected(rig, tenancy.nodeId, false);
    const id = await order(tenancy);
    expect(await shown(tenancy)).toMatchObject({ status: "Provisioning" });
    await tenancy.drive(id, "power_off_maas_node");
    await tenancy.sweep();
    const released = { reinstalledGeneration: 0, disksBefore: (await tenancy.now()).disksBefore };
    expect(await tenancy.now()).toEqual({ ...before, ...released });
    expect(await nodeOf(tenancy)).toMatchObject({ status: "enrolling" });
    expect(await shown(tenancy)).toMatchObject({ status: "Provisioning" });

    await tenancy.drive(id, "restore_tenant");
    expect((await readBaseline(db(), tenancy.nodeId, 1))?.baseline).toMatchObject({ problem: null });
    expect((await readBaseline(db(), tenancy.nodeId, 1))?.baseline.snapshot).not.toBeNull();
    expect(await grantsOf(tenancy), "no account before the baseline").toHaveLength(1);
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    await tenancy.sweep();
    const [grant] = await grantsOf(tenancy);
    const { loginUser: login_user, sshKeys: ssh_keys } = before;
    expect(grant?.input).toMatchObject({
      allocation_id: tenancy.id,
      login_user,
      ssh_keys,
      root: false,
      lowest_uid: 30_001,
    });
    expect(await tenancy.now()).toEqual({ ...before, ...released, generation: 1, grantTaskId: grant?.id });
    expect(await nodeOf(tenancy)).toMatchObject({ status: "active", cordonReason: null, generation: 1 });
    await isReady(tenancy);
    expect(await tenancy.records()).toEqual([]);
    expect((await historyOfNode(tenancy)).slice(-1)).toEqual(["InUse"]);
    expect(await historyOfNode(tenancy)).not.toContain("Reset");

    await tenancy.release();
    await turnsOver(tenancy);
  });

  it("refuses other work on the node while it runs, and begins only for an active tenant of a known machine", async () => {
    const tenancy = await begin();
    const { nodeId } = tenancy;
    await db()
      .insert(nodeHealthOverrides)
      .values({ nodeId, source: "restore", reason: "restored", setBy: "ann" } as never);
    expect(await refusal(tenancy)).toContain("may have another tenant");
    await db().delete(nodeHealthOverrides).where(eq(nodeHealthOverrides.nodeId, nodeId));
    const id = await order(tenancy);
    expect(await refusal(tenancy)).toContain(`Decommission ${id} holds node`);
    const asked = { verb: "off", immediate: false, reason: "r", by: ANN } as const;
    await expect(inTx((tx) => requestInstancePower(tx, tenancy.id, asked))).rejects.toMatchObject({
      code: "operation_exists",
    });
    await expect(tenancy.reimage()).rejects.toMatchObject({ code: "operation_exists" });
    await expect(tenancy.force(id)).rejects.toMatchObject({ code: "verb_not_allowed" });
    await tenancy.cancel(id);
    expect(await nodeOf(tenancy), "nothing was released").toMatchObject({ status: "active", cordonReason: null });
    expect((await shown(tenancy))?.status).toBe("Ready");

    expect(await refusal(await begin(false))).toContain("is granting");
    await tenancy.release();
    expect(await refusal(tenancy)).toContain("is ending");
  });
});

describe("an instance that is released during its reinstall", () => {
  it.each(["release_maas_node", "deploy_via_maas", "restore_tenant"])(
    "at %s gets no account again, and its host is cleaned after the reinstall",
    async (stage) => {
      const tenancy = await begin();
      const id = await order(tenancy);
      await tenancy.drive(id, stage);
      const grants = (await grantsOf(tenancy)).length;
      expect(await tenancy.release()).toBeNull();
      expect(await shown(tenancy)).toMatchObject({ status: "Terminating" });
      expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
      expect(await grantsOf(tenancy), "no new account").toHaveLength(grants);
      await turnsOver(tenancy);
    },
  );

  it("while the account is being made loses it again", async () => {
    const tenancy = await begin();
    const id = await order(tenancy);
    await tenancy.drive(id, "restore_tenant");
    tenancy.isAway = true;
    await tenancy.driver.step(id);
    expect((await grantsOf(tenancy))[0]).toMatchObject({ state: "queued" });
    await tenancy.release();
    expect((await grantsOf(tenancy))[0]).toMatchObject({ state: "cancelled" });
    tenancy.isAway = false;
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    await turnsOver(tenancy);
  });

  it("by force is cleaned without the agent of the old system", async () => {
    const tenancy = await begin();
    const id = await order(tenancy);
    await tenancy.drive(id, "wait_for_agent_enrollment");
    tenancy.isAway = true;
    await tenancy.release(true);
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("cancelled");
    expect(await nodeOf(tenancy)).toMatchObject({ status: "quarantined" });
    await tenancy.sweep();
    const turnover = (await tenancy.now()).decommissionId as WorkflowId;
    await tenancy.drive(turnover, "release_maas_node");
    tenancy.isAway = false;
    await turnsOver(tenancy);
  });
});

describe("a reinstall that does not come to its end", () => {
  it("shows the instance why, keeps its node, and can be resumed", async () => {
    const tenancy = await begin();
    failTheDeploy(tenancy);
    const id = await order(tenancy);
    expect(await tenancy.drive(id)).toMatch(/^failed/);
    await tenancy.sweep();
    expect((await tenancy.now()).status).toBe("active");
    const told = await shown(tenancy);
    expect(told).toMatchObject({ status: "Error", next_action: expect.stringContaining("resumes or cancels") });
    expect(told?.status_reason, "no word about MAAS or other hosts").toBe("The host could not be installed anew");
    rig.maas.sim.region.state.plans = {};
    await tenancy.driver.verb(id, "resume");
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    await isReady(tenancy);
  });

  it("and is cancelled leaves a quarantined node, an instance in Error, and a turnover that asks for the erase", async () => {
    const tenancy = await begin();
    failTheDeploy(tenancy);
    const id = await order(tenancy);
    expect(await tenancy.drive(id)).toMatch(/^failed/);
    await tenancy.cancel(id);
    expect(await nodeOf(tenancy)).toMatchObject({ status: "quarantined", cordonReason: null });
    expect((await tenancy.now()).status).toBe("active");
    expect(await shown(tenancy)).toMatchObject({
      status: "Error",
      next_action: expect.stringContaining("reinstall-instance"),
    });
    await db().update(nodes).set({ status: "active" }).where(eq(nodes.id, tenancy.nodeId));
    expect((await shown(tenancy))?.status, "whatever a person makes of the node").toBe("Error");
    await db().update(nodes).set({ status: "quarantined" }).where(eq(nodes.id, tenancy.nodeId));

    tenancy.isAway = true;
    const turnover = await tenancy.release();
    expect(await tenancy.drive(turnover)).toMatch(/^failed/);
    expect(await tenancy.driver.story(turnover)).toContain("release_maas_node");
    expect((await tenancy.now()).status).toBe("ending");
  });

  it("and is cancelled after its release can be ordered again", async () => {
    const tenancy = await begin();
    const id = await order(tenancy);
    await tenancy.drive(id, "configure_storage");
    await tenancy.cancel(id);
    expect(await nodeOf(tenancy)).toMatchObject({ status: "quarantined" });
    const again = await order(tenancy);
    rig.maas.sim.region.state.plans = {};
    expect(await tenancy.drive(again), await tenancy.driver.story(again)).toBe("completed");
    expect(await nodeOf(tenancy)).toMatchObject({ status: "active" });
    await isReady(tenancy);
  });

  it("because the account cannot be made, and is cancelled, leaves no instance that seems to work", async () => {
    const tenancy = await begin();
    tenancy.resultOf = (task) =>
      task.type === "allocation.grant_user" ? { uid: null, steps: [] } : resultOnCleanHost(task);
    const id = await order(tenancy);
    expect(await tenancy.drive(id)).toBe("failed_manual_intervention");
    await tenancy.cancel(id);
    expect(await nodeOf(tenancy)).toMatchObject({ status: "quarantined", generation: 1 });
    expect(await tenancy.now()).toMatchObject({ status: "active", generation: 1, grantTaskId: null });
    await db().update(nodes).set({ status: "active" }).where(eq(nodes.id, tenancy.nodeId));
    await db().update(allocations).set({ keysDue: true }).where(eq(allocations.id, tenancy.id));
    const before = await grantsOf(tenancy);
    await tenancy.sweep();
    expect(await grantsOf(tenancy), "no keys for an account that is gone").toEqual(before);
    expect(await shown(tenancy)).toMatchObject({
      status: "Error",
      next_action: expect.stringContaining("reinstall-instance"),
    });
    tenancy.resultOf = resultOnCleanHost;
    await tenancy.release();
    await turnsOver(tenancy);
  });

  it("because the account cannot be made stops for a person", async () => {
    const tenancy = await begin();
    const clash = { step: "account", target: "alice", outcome: "failed", message: "busy", evidence: {} };
    tenancy.resultOf = (task) =>
      task.type === "allocation.grant_user" ? { uid: null, steps: [clash] } : resultOnCleanHost(task);
    const id = await order(tenancy);
    expect(await tenancy.drive(id)).toBe("failed_manual_intervention");
    expect(await shown(tenancy)).toMatchObject({ status: "Error" });
    const uids = (await grantsOf(tenancy))
      .slice(0, -1)
      .map(({ input }) => (input as { lowest_uid?: number }).lowest_uid);
    expect(uids, "each attempt asks for the same uid").toEqual(uids.map(() => 30_001));
    expect(uids.length).toBeGreaterThan(1);
    tenancy.resultOf = resultOnCleanHost;
    await tenancy.driver.verb(id, "resume");
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    await isReady(tenancy);
  });
});
