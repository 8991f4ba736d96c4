/** What a reinstall must never lose: the tenant's uid, rights and disks, the end of the tenant's time, and the need of a whole cleaning afterwards. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../hub/db/orm.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { allocations, maasSiteProfiles, nodeHealthOverrides, tasks } from "../../hub/db/schema/index.ts";
import { openOnlineRepair } from "../../hub/repair/open-repair.ts";
import { DecommissionState } from "../../hub/workflows/decommission/decommission-context.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { unpackUserData } from "../fakes/maas/host/user-data.ts";
import { resultOnCleanHost } from "../support/agent-results.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { failTheDeploy, grantsOf, nodeOf, orderReinstall, refusalOf, shown, turnsOver } from "./reinstalled.ts";
import { Tenancy } from "./tenancy.ts";

let rig: OnboardingRig;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 16 });
});
afterAll(() => rig?.close());

const db = () => rig.services.db;
const begin = (): Promise<Tenancy> => Tenancy.begin(rig, ++boxes, true);
const refuseAccounts = (tenancy: Tenancy): void => {
  tenancy.resultOf = (task) =>
    task.type === "allocation.grant_user" ? { uid: null, steps: [] } : resultOnCleanHost(task);
};
const inputOf = async (tenancy: Tenancy) => (await grantsOf(tenancy))[0]?.input;
/** Orders a reinstall that deploys the new system and fails at the tenant's account. */
async function failsAtAccount(tenancy: Tenancy): Promise<WorkflowId> {
  refuseAccounts(tenancy);
  const id = await orderReinstall(tenancy);
  expect(await tenancy.drive(id)).toBe("failed_manual_intervention");
  expect((await readWorkflow(db(), id))?.stage).toBe("restore_tenant");
  tenancy.resultOf = resultOnCleanHost;
  return id;
}

describe("a reinstall that is begun again and then cancelled", () => {
  it("is still known, so the instance is in Error and its turnover a reimage with an erase", async () => {
    const tenancy = await begin();
    const id = await failsAtAccount(tenancy);
    await tenancy.driver.verb(id, "restart_clean");
    await tenancy.drive(id, "load_site_config");
    await tenancy.cancel(id);
    expect(await nodeOf(tenancy)).toMatchObject({ status: "quarantined", cordonReason: null });
    expect(await shown(tenancy)).toMatchObject({ status: "Error", next_action: expect.stringContaining("reinstall") });
    await tenancy.release();
    await turnsOver(tenancy);
  });
});

describe("the account on the new system", () => {
  it("keeps its uid over a cancelled reinstall", async () => {
    const tenancy = await begin();
    await tenancy.cancel(await failsAtAccount(tenancy));
    const again = await orderReinstall(tenancy);
    expect(await tenancy.drive(again), await tenancy.driver.story(again)).toBe("completed");
    expect(await inputOf(tenancy)).toMatchObject({ lowest_uid: 30_001 });
  });

  it("keeps its uid over a failed attempt, whatever a person has planned meanwhile", async () => {
    const tenancy = await begin();
    const id = await failsAtAccount(tenancy);
    const [grant] = await grantsOf(tenancy);
    const plan = { ...(grant?.input as object), plan: true, lowest_uid: 30_500 };
    await db()
      .insert(tasks)
      .values({
        nodeId: tenancy.nodeId,
        type: "allocation.grant_user",
        input: plan,
        idempotencyKey: "a plan",
        deadline: new Date(Date.now() + 60_000),
      } as never);
    await tenancy.driver.verb(id, "resume");
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    const uids = (await grantsOf(tenancy)).map(({ input }) => input as { plan: boolean; lowest_uid: number });
    expect(uids.find((one) => !one.plan)).toMatchObject({ lowest_uid: 30_001 });
  });

  it("keeps the rights of root", async () => {
    const tenancy = await begin();
    await db().update(allocations).set({ grantsRoot: true }).where(eq(allocations.id, tenancy.id));
    const id = await orderReinstall(tenancy);
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    expect(await inputOf(tenancy)).toMatchObject({ root: true });
  });

  it("says so if its uid is another one, because files on the data disks have the old one", async () => {
    const tenancy = await begin();
    tenancy.resultOf = (task) => {
      const result = resultOnCleanHost(task);
      return task.type === "allocation.grant_user" ? { ...(result as object), uid: 30_077 } : result;
    };
    const id = await orderReinstall(tenancy);
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    expect(await tenancy.driver.story(id)).toContain("with uid 30077, because uid 30001 was taken");
  });
});

describe("the cleaning after a reinstall", () => {
  it("is no soft reset, and no reimage without a secure erase", async () => {
    const tenancy = await begin();
    const id = await orderReinstall(tenancy);
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    const turnover = await tenancy.release();
    await tenancy.cancel(turnover);
    const soft = { mode: "soft_reset", storage_cleanup: "all", reason: "r", agent_wait_seconds: 0 } as const;
    const reimage = (erase: "none" | "quick" | "secure") =>
      tenancy.start({ mode: "reimage", erase, reason: "r", agent_wait_seconds: 0 });
    for (const refused of [() => tenancy.start(soft), () => reimage("none"), () => reimage("quick")])
      expect(await refusalOf(refused())).toContain("only a reimage with a secure erase cleans it");
    expect(await refusalOf(reimage("secure"))).toBe("accepted");
  });

  it("looks for the disks that the host had before, also for one that is gone since", async () => {
    const tenancy = await begin();
    const id = await orderReinstall(tenancy);
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    const { disksBefore } = await tenancy.now();
    await db()
      .update(allocations)
      .set({ disksBefore: [...disksBefore, "GONE-SINCE"] })
      .where(eq(allocations.id, tenancy.id));
    const turnover = await tenancy.release();
    await tenancy.drive(turnover, "release_maas_node");
    const state = DecommissionState.partial().parse((await readWorkflow(db(), turnover))?.state);
    expect(state.disks_before?.serials).toContain("GONE-SINCE");
  });
});

describe("the first boot of the new system", () => {
  it.each([true, false])(
    "only mounts the shares on the data disks, also if the profile initializes disks: %s",
    async (initializeExtraDisks) => {
      const tenancy = await begin();
      await db().update(maasSiteProfiles).set({ initializeExtraDisks, eraseUnexpectedSignatures: true });
      const id = await orderReinstall(tenancy);
      expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
      const { userData } = rig.maas.sim.region.findMachine(tenancy.host.machine.systemId) ?? {};
      const parts = unpackUserData(Buffer.from(userData ?? "", "base64")).map(({ content }) => content.toString());
      const disks = parts.filter((part) => part.includes("KEEP_ONLY"));
      expect(disks).toHaveLength(1);
      expect(disks[0]).toMatch(/^readonly KEEP_ONLY='true'$/m);
      expect(disks[0]).toMatch(/^readonly ERASE_SIGNATURES='false'$/m);
    },
  );
});

describe("the end of the tenant's time", () => {
  it("comes as planned while the host is installed anew, and the host gets no account again", async () => {
    const tenancy = await begin();
    const id = await orderReinstall(tenancy);
    await tenancy.drive(id, "deploy_via_maas");
    await db()
      .update(allocations)
      .set({ endsAt: new Date(Date.now() - 1_000) })
      .where(eq(allocations.id, tenancy.id));
    await tenancy.sweep();
    expect(await tenancy.now()).toMatchObject({ status: "ending", decommissionId: null });
    const grants = (await grantsOf(tenancy)).length;
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    expect(await grantsOf(tenancy)).toHaveLength(grants);
    await turnsOver(tenancy);
  });

  it("comes by a release after a failed deploy, which cancels the reinstall", async () => {
    const tenancy = await begin();
    failTheDeploy(tenancy);
    const id = await orderReinstall(tenancy);
    expect(await tenancy.drive(id)).toMatch(/^failed/);
    await tenancy.release();
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("cancelled");
    await tenancy.sweep();
    expect(await tenancy.now()).toMatchObject({ status: "ending", decommissionId: expect.any(String) });
    rig.maas.sim.region.state.plans = {};
  });

  it("comes by a release of a reinstall that a person has stopped, which stays stopped", async () => {
    const tenancy = await begin();
    const id = await orderReinstall(tenancy);
    await tenancy.drive(id, "deploy_via_maas");
    await tenancy.driver.verb(id, "mark_manual_intervention");
    expect(await tenancy.drive(id)).toBe("failed_manual_intervention");
    await tenancy.release();
    await tenancy.sweep();
    expect((await readWorkflow(db(), id))?.status).toBe("failed_manual_intervention");
    expect(await tenancy.now()).toMatchObject({ status: "ending", decommissionId: null });
    expect((await shown(tenancy))?.next_action).toContain("resumes or cancels the reinstall");
  });

  it("comes by a release after a failed account, and the reinstall goes on without it", async () => {
    const tenancy = await begin();
    const id = await failsAtAccount(tenancy);
    const grants = (await grantsOf(tenancy)).length;
    await tenancy.release();
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    expect(await grantsOf(tenancy)).toHaveLength(grants);
    await turnsOver(tenancy);
  });
});

it("is refused where an override keeps the instance from being released", async () => {
  const tenancy = await begin();
  const alert = {
    id: "Evidence",
    target: null,
    message: "m",
    tenant_message: null,
    classifications: ["PreventInstanceDeletion"],
  };
  await db()
    .insert(nodeHealthOverrides)
    .values({
      nodeId: tenancy.nodeId,
      source: "evidence",
      reason: "an inquiry",
      setBy: "operator:ann",
      alerts: [alert],
    } as never);
  expect(await refusalOf(orderReinstall(tenancy))).toContain("evidence");
  expect(await nodeOf(tenancy)).toMatchObject({ status: "active", cordonReason: null });
});

it("keeps an online repair away until it is over, because nobody repairs a host that is installed anew", async () => {
  const tenancy = await begin();
  const body = {
    allocation_id: tenancy.id,
    machine_health_issue: { category: "Hardware", summary: "GPU 3 fell off the bus", details: null },
    acknowledgements: {
      accept_data_corruption_risk: true,
      accept_repair_team_access: true,
      accept_instance_deletion_risk: true,
    },
    release_on_failure: false,
    reason: "seen by the tenant",
  } as const;
  const open = () => refusalOf(rig.services.inTx((tx) => openOnlineRepair(tx, body, "ann")));
  const id = await orderReinstall(tenancy);
  await tenancy.drive(id, "deploy_via_maas");
  expect(await open()).toMatch(new RegExp(`${id} holds node .*, so it takes no online repair`));
  expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
  expect(await open()).toBe("accepted");
});
