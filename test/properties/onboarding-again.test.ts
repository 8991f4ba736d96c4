import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq } from "../../hub/db/orm.ts";
import { domainEvents, maasRoceAssignments, nodeConditions, nodeMaasState, nodes } from "../../hub/db/schema/index.ts";
import { schedulability } from "../../hub/node/schedulable.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { startDecommission } from "../../hub/workflows/start-decommission.ts";
import { startOnboarding } from "../../hub/workflows/start-onboarding.ts";
import type { NodeId } from "../../shared/ids.ts";
import { bmcAddress, ROCE_NICS } from "../fakes/maas/state/site.ts";
import { playDecommissionedAgent } from "../support/decommission-world.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../support/onboarding-rig.ts";
import { until } from "../support/until.ts";
import { Driver } from "./drive.ts";

/** A host that was a node before, and a machine that is a node under another name. */
let rig: OnboardingRig;
let arriving: Driver;
let leaving: Driver;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 9 });
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

describe("the RoCE addresses of a host that is onboarded again", () => {
  const rowsOf = (hostname: string) => eq(maasRoceAssignments.hostname, hostname);
  const staticOf = (systemId: string): string[] =>
    (rig.maas.sim.region.findMachine(systemId)?.interfaces ?? [])
      .flatMap((nic) =>
        nic.links.filter((link) => link.mode === "static").map((link) => `${nic.name} ${link.ipAddress}`),
      )
      .toSorted();
  const roceOf = async (nodeId: NodeId) =>
    (
      await db()
        .select()
        .from(nodeConditions)
        .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, "network.roce")))
    )[0];
  const schedulable = (word: { reason: string; status: "True" | "False" | "Unknown" } | undefined) =>
    word === undefined
      ? []
      : schedulability({ status: "active", cordonReason: null, generation: 1, hostClosed: false }, [
          { ...word, type: "network.roce", generation: 1, stale: false },
        ]).reasons.filter((reason) => reason.startsWith("network.roce"));
  const [first, second] = ROCE_NICS;

  it("are those of the rows: what a row named before is taken away, what others made stays and is told", async () => {
    const { nodeId, hostname, systemId } = await onboarded(7);
    expect(staticOf(systemId)).toEqual([`${first} 172.30.0.15`, `${second} 172.31.0.15`]);
    expect(await roceOf(nodeId)).toMatchObject({ status: "True", reason: "AllSet" });
    await removed(nodeId);
    await releasedInMaas(systemId);
    const maas = await rig.services.maas(rig.siteId);
    const nic = (await maas.interfaces(systemId)).find((one) => one.name === second);
    const subnet = (await maas.subnets()).find((one) => one.cidr === "172.31.0.14/31");
    if (nic === undefined || subnet === undefined) throw new Error("no such interface or subnet");
    await maas.linkSubnet(systemId, nic.id, { mode: "static", subnetId: subnet.id, ipAddress: "172.31.0.14" });
    await db()
      .update(maasRoceAssignments)
      .set({ ipv4Cidr: "172.30.9.1/31" })
      .where(and(rowsOf(hostname), eq(maasRoceAssignments.interface, first)));
    const again = await onboarded(7);
    expect(staticOf(systemId)).toEqual([`${first} 172.30.9.1`, `${second} 172.31.0.14`, `${second} 172.31.0.15`]);
    const word = await roceOf(again.nodeId);
    expect(word).toMatchObject({ status: "True" });
    expect(word?.message).toContain(`were left: ${second} 172.31.0.14`);
  });

  it.each([
    [true, "AddressesMissing", 1],
    [false, "MissingButAllowed", 0],
  ] as const)(
    "are never a quiet part of them on a node that may be used (required: %s)",
    async (required, reason, barred) => {
      const n = required ? 8 : 9;
      const profileId = await rig.addProfile(`roce-${n}`, { roce_required: required });
      const { id, nodeId, hostname } = await rig.start(n, profileId);
      await db()
        .update(maasRoceAssignments)
        .set({ interface: "ens99f9" })
        .where(and(rowsOf(hostname), eq(maasRoceAssignments.interface, first)));
      expect((await arriving.drive(id)).status).toBe("completed");
      const word = await roceOf(nodeId);
      expect(word).toMatchObject({ status: "False", reason });
      expect(word?.message).toMatch(/^1 of 2 .* ens99f9 .*no such interface/);
      expect(schedulable(word)).toHaveLength(barred);
      const told = await db()
        .select()
        .from(domainEvents)
        .where(and(eq(domainEvents.type, "node.roce.incomplete"), eq(domainEvents.subject, `nodes/${nodeId}`)));
      expect(told).toMatchObject([
        { data: { onboarding_id: id, assignments: 2, applied: 1, bars_scheduling: required } },
      ]);
    },
  );
});

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
