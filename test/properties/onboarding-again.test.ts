import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../hub/db/orm.ts";
import { nodeMaasState, nodes } from "../../hub/db/schema/index.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { startDecommission } from "../../hub/workflows/start-decommission.ts";
import { startOnboarding } from "../../hub/workflows/start-onboarding.ts";
import type { NodeId } from "../../shared/ids.ts";
import { bmcAddress } from "../fakes/maas/state/site.ts";
import { playDecommissionedAgent } from "../support/decommission-world.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../support/onboarding-rig.ts";
import { until } from "../support/until.ts";
import { Driver } from "./drive.ts";

/** A host that was a node before, and a machine that is a node under another name. */
let rig: OnboardingRig;
let arriving: Driver;
let leaving: Driver;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 6 });
  const kinds = workflowsOf(rig.services);
  arriving = new Driver(rig.test, kinds, (id) => rig.playAgent(id));
  leaving = new Driver(rig.test, kinds, (id) => playDecommissionedAgent(rig, id));
});
afterAll(() => rig?.close());
const db = () => rig.test.database.db;

async function onboarded(n: number) {
  const started = await rig.start(n);
  const end = await arriving.drive(started.id);
  expect(end.status, await arriving.story(started.id)).toBe("completed");
  return { ...started, systemId: (end.state as { maas_system_id: string }).maas_system_id };
}

async function removed(nodeId: NodeId): Promise<void> {
  const asked = { reason: "old", agent_wait_seconds: 9 };
  for (const request of [
    { mode: "drain", ...asked, deadline_seconds: 0, force: true } as const,
    { mode: "remove", ...asked } as const,
  ]) {
    const created = await rig.test.database.inTx((tx) => startDecommission(tx, nodeId, request, "ann"));
    expect((await leaving.drive(created.decommission_id)).status).toBe("completed");
  }
}

async function releasedInMaas(systemId: string): Promise<void> {
  await (await rig.services.maas(rig.siteId)).release(systemId, { comment: "by a person" });
  await until("the machine to be Ready", () => rig.maas.sim.region.findMachine(systemId)?.status === 4 || undefined);
}

const bindingsOf = (systemId: string) =>
  db().select().from(nodeMaasState).where(eq(nodeMaasState.maasSystemId, systemId));
const statusOf = async (nodeId: NodeId) =>
  (await db().select({ status: nodes.status }).from(nodes).where(eq(nodes.id, nodeId)))[0]?.status;

describe("a host that was removed", () => {
  it("is onboarded again, as a node of its own", async () => {
    const first = await onboarded(1);
    await removed(first.nodeId);
    expect(await bindingsOf(first.systemId)).toEqual([]);
    await releasedInMaas(first.systemId);
    const again = await onboarded(1);
    expect(again.systemId).toBe(first.systemId);
    expect(again.nodeId).not.toBe(first.nodeId);
    expect([await statusOf(first.nodeId), await statusOf(again.nodeId)]).toEqual(["deleted", "active"]);
    expect(await bindingsOf(first.systemId)).toMatchObject([{ nodeId: again.nodeId }]);
  });

  it("is onboarded again although an older hub left its binding behind", async () => {
    const first = await onboarded(2);
    const [binding] = await bindingsOf(first.systemId);
    await removed(first.nodeId);
    if (binding !== undefined) await db().insert(nodeMaasState).values(binding);
    await releasedInMaas(first.systemId);
    const again = await onboarded(2);
    expect(await bindingsOf(first.systemId)).toMatchObject([{ nodeId: again.nodeId }]);
  });
});

describe("a machine that is a node under another name", () => {
  const named = (n: number, hostname: string) => ({
    site_id: rig.siteId,
    profile_id: rig.profileId,
    sku_id: SKU,
    hostname,
    ipmi_ip: bmcAddress(n),
  });

  it("is refused when it is asked for by its BMC", async () => {
    const { nodeId } = await onboarded(3);
    const request = named(3, "another-name");
    await expect(
      rig.test.database.inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" })),
    ).rejects.toMatchObject({ code: "conflict", errors: [{ pointer: "/ipmi_ip" }], context: { node_id: nodeId } });
  });

  it("is not touched when only MAAS says that it is the one", async () => {
    const { nodeId, systemId } = await onboarded(4);
    // Its binding says another BMC, so the request could not be refused.
    await db().update(nodeMaasState).set({ ipmiIp: "10.9.9.9" }).where(eq(nodeMaasState.nodeId, nodeId));
    await releasedInMaas(systemId);
    const request = named(4, "yet-another-name");
    const created = await rig.test.database.inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" }));
    const end = await arriving.drive(created.onboarding_id);
    expect(end).toMatchObject({
      status: "failed_manual_intervention",
      stage: "create_or_find_in_maas",
      failureClass: "state_ambiguity",
      failureCode: "conflicting_candidates",
      evidence: { node_id: nodeId, node_status: "active" },
    });
    expect(end.failureMessage).toContain("host-4");
    expect(rig.maas.sim.region.findMachine(systemId)?.hostname).toBe("host-4");
    expect(await bindingsOf(systemId)).toMatchObject([{ nodeId }]);
  });
});
