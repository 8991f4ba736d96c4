import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { isHostReleased, retirementsOf } from "../../hub/db/queries/machine-releases.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import {
  maasSiteProfiles,
  nodeCertificates,
  nodeEvents,
  nodeMaasState,
  nodes,
  workflows,
} from "../../hub/db/schema/index.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { type DeployedHost, retiredHost, startRelease } from "../support/release-world.ts";
import { nextVerbOf } from "./converge.ts";
import { Driver } from "./drive.ts";

/** Tests what can prevent the release of a retired node's machine, and what then happens to the node (lifecycle 5.4, 6.4). */
let rig: OnboardingRig;
let driver: Driver;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 30 });
  driver = new Driver(rig.test, workflowsOf(rig.services), async () => undefined);
});
afterAll(() => rig?.close());

const db = () => rig.test.database.db;
const region = () => rig.maas.sim.region;
const anotherHost = (): Promise<DeployedHost> => {
  boxes += 1;
  return retiredHost(rig, boxes);
};
const countsOf = ({ machine }: DeployedHost) => region().state.counters[machine.systemId];
const nodeOf = async (id: NodeId) => (await db().select().from(nodes).where(eq(nodes.id, id)))[0];
const isGone = async (id: NodeId): Promise<boolean> => {
  const node = await nodeOf(id);
  const rows = await db().select().from(nodeCertificates).where(eq(nodeCertificates.nodeId, id));
  const revoked = rows.every((row) => row.revokedAt !== null);
  const released = node !== undefined && (await isHostReleased(db(), node));
  expect(revoked, "certificates end with the host").toBe(released);
  return released;
};
const untilStage = async (id: WorkflowId, stage: string, looks: number): Promise<void> => {
  for (let look = 0; look < looks; look += 1) await driver.step(id);
  expect((await readWorkflow(db(), id))?.stage, await driver.story(id)).toBe(stage);
};

describe("the release of a retired node's machine", () => {
  it("happens once, leaves the node retired and bound, and revokes the host's certificates", async () => {
    const host = await anotherHost();
    const { id } = await startRelease(rig, host);
    expect((await driver.drive(id)).status).toBe("completed");
    expect(countsOf(host)).toMatchObject({ release: 1, power_off: 1 });
    expect(host.machine).toMatchObject({ status: STATUS.ready, owner: null });
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "retired" });
    const bindings = await db().select().from(nodeMaasState).where(eq(nodeMaasState.nodeId, host.nodeId));
    expect(bindings).toMatchObject([{ maasSystemId: host.machine.systemId }]);
    expect(await isGone(host.nodeId)).toBe(true);
    // The remove of a node does not wait for the agent of a released host, because such a host has no agent.
    const removal = await rig.test.database.inTx((tx) =>
      startDecommission(tx, host.nodeId, { mode: "remove", reason: "gone", agent_wait_seconds: 900 }, "ann"),
    );
    expect((await driver.drive(removal.decommission_id)).status).toBe("completed");
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "deleted" });
  });

  it.each([
    ["another user's", "machine_owned_by_other", ({ machine }: DeployedHost) => region().setOwner(machine, "somebody")],
    [
      "locked",
      "machine_locked",
      ({ machine }: DeployedHost) => {
        machine.locked = true;
      },
    ],
    ["broken", "unexpected_maas_status", ({ machine }: DeployedHost) => region().forceStatus(machine, STATUS.broken)],
    [
      "deleted from MAAS",
      "bound_machine_vanished",
      ({ machine }: DeployedHost) => {
        region().state.machines = region().state.machines.filter((one) => one !== machine);
      },
    ],
    [
      "no longer bound to the node",
      "node_state_conflict",
      ({ nodeId }: DeployedHost) => db().delete(nodeMaasState).where(eq(nodeMaasState.nodeId, nodeId)),
    ],
    [
      "of a node that is no longer retired",
      "node_state_conflict",
      ({ nodeId }: DeployedHost) => db().update(nodes).set({ status: "active" }).where(eq(nodes.id, nodeId)),
    ],
  ] as const)(
    "does nothing to a machine that is %s, and a cancel changes nothing either",
    async (_name, code, spoil) => {
      const host = await anotherHost();
      const { id } = await startRelease(rig, host);
      await spoil(host);
      const end = await driver.drive(id);
      expect({ status: end.status, code: end.failureCode }).toEqual({ status: "failed_manual_intervention", code });
      expect((end.nextAction ?? "").length).toBeGreaterThan(20);
      expect(end.evidence).toMatchObject({ maas_system_id: host.machine.systemId });
      expect(countsOf(host)).toMatchObject({ release: 0, power_off: 0 });
      await driver.verb(id, "cancel");
      expect((await driver.drive(id)).status).toBe("cancelled");
      expect(countsOf(host)).toMatchObject({ release: 0, power_off: 0 });
      expect(await isGone(host.nodeId)).toBe(false);
    },
  );

  it("waits for a disk erase that MAAS does by itself, and requests none", async () => {
    region().state.config["enable_disk_erasing_on_release"] = true;
    const host = await anotherHost();
    const { id } = await startRelease(rig, host);
    const end = await driver.drive(id);
    region().state.config["enable_disk_erasing_on_release"] = false;
    expect(end.status, await driver.story(id)).toBe("completed");
    expect(countsOf(host)).toMatchObject({ release: 1 });
  });

  it.each([
    ["release", STATUS.failed_releasing, "bmc_power_failure/power_action_failed"],
    ["erase", STATUS.failed_disk_erasing, "upstream_transient/erase_failed"],
  ] as const)("reports a failed %s before it asks MAAS again", async (_what, status, failure) => {
    const host = await anotherHost();
    const { id } = await startRelease(rig, host);
    region().forceStatus(host.machine, status);
    let told = 0;
    for (let looks = 0; told === 0 && looks < 20; looks += 1) {
      await driver.step(id);
      told = (await driver.story(id)).match(/(retrying|failed): /g)?.length ?? 0;
    }
    const row = await readWorkflow(db(), id);
    expect(`${row?.failureClass}/${row?.failureCode}`).toBe(failure);
    expect(countsOf(host), "nothing was asked for before it was told").toMatchObject({ release: 0 });
    expect(await isGone(host.nodeId), "MAAS had taken the release").toBe(true);
    if (row?.status.startsWith("failed_")) await driver.verb(id, nextVerbOf(row));
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(countsOf(host)).toMatchObject({ release: 1 });
  });

  it("gives up after three tries when the BMC never lets MAAS switch the machine off", async () => {
    const host = await anotherHost();
    host.box.bmcReachable = false;
    const { id } = await startRelease(rig, host);
    const end = await driver.drive(id);
    expect({ status: end.status, failure: `${end.failureClass}/${end.failureCode}` }).toEqual({
      status: "failed_manual_intervention",
      failure: "bmc_power_failure/power_action_failed",
    });
    expect(countsOf(host)).toMatchObject({ release: 3 });
    host.box.bmcReachable = true;
    await driver.verb(id, "resume");
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
  });

  it("cannot be cancelled once MAAS has accepted it, and says so", async () => {
    const host = await anotherHost();
    const { id } = await startRelease(rig, host);
    await untilStage(id, "release_maas_node", 2);
    expect(await isGone(host.nodeId)).toBe(true);
    await driver.verb(id, "cancel");
    const end = await driver.drive(id);
    expect(end).toMatchObject({
      status: "cancelled",
      failureCode: null,
      evidence: { maas_system_id: host.machine.systemId },
    });
    expect(end.failureMessage).toContain("cannot be undone");
    expect(end.nextAction).toContain("Remove the node");
    expect(await driver.story(id)).toContain("cannot be undone");
    expect(await isGone(host.nodeId)).toBe(true);
  });

  it("waits after a lost answer before a cancel concludes that nothing was released", async () => {
    for (const arrives of [true, false]) {
      const host = await anotherHost();
      const { id } = await startRelease(rig, host);
      await untilStage(id, "release_maas_node", 1);
      await driver.verb(id, "cancel");
      await driver.step(id);
      expect((await readWorkflow(db(), id))?.waitReason).toContain("whose answer was lost");
      if (arrives) await (await rig.services.maas(rig.siteId)).release(host.machine.systemId, { comment: "" });
      else
        await db()
          .update(workflows)
          .set({
            compensation: sql`jsonb_set(${workflows.compensation}, '{startedAt}', to_jsonb((now() - interval '31 seconds')::text))`,
          })
          .where(eq(workflows.id, id));
      expect((await driver.drive(id)).status, await driver.story(id)).toBe("cancelled");
      expect(await isGone(host.nodeId)).toBe(arrives);
    }
  });
});

describe("the age of a retirement", () => {
  it("counts from the retirement or from the cancel of the last release, next to the limit of the profile", async () => {
    const host = await anotherHost();
    const told = async () => (await retirementsOf(db(), rig.siteId)).get(host.nodeId);
    expect(await told()).toMatchObject({ nodeId: host.nodeId, retiredReleaseAfterSeconds: 3600 });
    await db()
      .update(nodeEvents)
      .set({ occurredAt: sql`now() - interval '2 hours'` })
      .where(eq(nodeEvents.nodeId, host.nodeId));
    expect((await told())?.retiredForSeconds).toBeGreaterThanOrEqual(7_200);
    const { id } = await startRelease(rig, host);
    await driver.verb(id, "cancel");
    await driver.drive(id);
    expect((await told())?.retiredForSeconds).toBeLessThan(7_200);
    await db().update(maasSiteProfiles).set({ retiredReleaseAfterSeconds: null });
    expect(await told()).toMatchObject({ retiredReleaseAfterSeconds: null });
    await db().update(nodes).set({ status: "active" }).where(eq(nodes.id, host.nodeId));
    expect(await told()).toBeUndefined();
  });
});
