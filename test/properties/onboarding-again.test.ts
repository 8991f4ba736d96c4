import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq } from "../../hub/db/orm.ts";
import { listConditions } from "../../hub/db/queries/node-conditions.ts";
import { listNodeRows } from "../../hub/db/queries/node-reads.ts";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { domainEvents, maasRoceAssignments, nodeConditions, nodeMaasState, nodes } from "../../hub/db/schema/index.ts";
import { schedulability } from "../../hub/node/schedulable.ts";
import { schedulingFactsOf } from "../../hub/node/scheduling-facts.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import { startOnboarding } from "../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { bmcAddress, ROCE_NICS } from "../fakes/maas/state/site.ts";
import { playDecommissionedAgent } from "../support/decommission-world.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../support/onboarding-rig.ts";
import { until } from "../support/until.ts";
import { Driver, plainly } from "./drive.ts";

/** Tests the onboarding of hosts that were nodes before, and of machines that belong to nodes under another name. */
let rig: OnboardingRig;
let arriving: Driver;
let leaving: Driver;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 10 });
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
  /** Returns the node's status, its condition `network.roce`, and whether the condition keeps new work off the node. */
  const shown = async (id: NodeId) => {
    const [row] = await listNodeRows(db(), { id }, { limit: 1, after: null });
    if (row === undefined) throw new Error("no such node");
    const { reasons } = schedulability({ ...schedulingFactsOf(row, false), baselineLack: [] }, row.conditions);
    const word = (await listConditions(db(), id)).find(({ type }) => type === "network.roce");
    return { status: row.node.status, word, barredBy: reasons.filter((reason) => reason.startsWith("network.roce")) };
  };
  const toldOf = (nodeId: NodeId) =>
    db()
      .select()
      .from(domainEvents)
      .where(and(eq(domainEvents.type, "node.roce.incomplete"), eq(domainEvents.subject, `nodes/${nodeId}`)));
  const [first, second] = ROCE_NICS;

  it("follow the RoCE rows: addresses of old rows are removed, addresses that others made stay and are reported", async () => {
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
    expect(word?.message).toContain(`set on the same interfaces: ${second} 172.31.0.14`);
  });

  it("are removed when the profile of the new onboarding has no RoCE", async () => {
    const { nodeId, systemId } = await onboarded(6);
    expect(staticOf(systemId)).toHaveLength(2);
    await removed(nodeId);
    await releasedInMaas(systemId);
    const again = await rig.start(6, await rig.addProfile("no-roce", { enable_phase2_roce: false }));
    expect((await arriving.drive(again.id)).status).toBe("completed");
    expect([staticOf(systemId), await roceOf(again.nodeId)]).toEqual([[], undefined]);
  });

  /**
   * Problems by which the onboarding cannot set the address of the first RoCE row in MAAS. The function `make` causes the problem for one host, and
   * returns a function that removes the problem.
   */
  const TROUBLES = {
    "an interface that the machine lacks": {
      says: /^1 of 2 RoCE addresses are set\. Not set: ens99f9 172\.30\S+: the machine has no such interface/,
      make: async (hostname: string) => {
        const row = and(rowsOf(hostname), eq(maasRoceAssignments.interface, first));
        await db().update(maasRoceAssignments).set({ interface: "ens99f9" }).where(row);
        const named = and(rowsOf(hostname), eq(maasRoceAssignments.interface, "ens99f9"));
        return () => db().update(maasRoceAssignments).set({ interface: first }).where(named);
      },
    },
    // MAAS answers 404 when the onboarding links an address that another machine has.
    "an address that another machine has": {
      says: new RegExp(`^1 of 2 RoCE addresses are set\\. Not set: ${first} 172\\.30\\S+: .*404.*already in use`),
      make: async (_hostname: string, n: number) => {
        const taken = `172.30.0.${2 * n + 1}`;
        const nic = rig.maas.sim.region.state.machines[0]?.interfaces.find(({ name }) => name === first);
        if (nic === undefined) throw new Error("no machine that could have the address");
        const before = [...nic.links];
        nic.links.push({ id: 9_000_000 + n, mode: "static", subnetId: null, ipAddress: taken });
        return async () => {
          nic.links = before;
        };
      },
    },
  } as const;

  it.each([
    [8, "an interface that the machine lacks", true],
    [9, "an interface that the machine lacks", false],
    [10, "an address that another machine has", true],
  ] as const)(
    "on host %i with %s are reported as incomplete (required: %s) until all are set",
    async (n, what, required) => {
      const profileId = await rig.addProfile(`roce-${n}`, { roce_required: required });
      const { id, nodeId, hostname } = await rig.start(n, profileId);
      const { says, make } = TROUBLES[what];
      const mend = await make(hostname, n);
      const end = await arriving.drive(id);
      expect(end.status, "the other rails are there (lifecycle 4.6)").toBe("completed");
      const now = await shown(nodeId);
      const reason = required ? "AddressesMissing" : "MissingButAllowed";
      expect(now).toMatchObject({ status: "active", word: { status: "False", reason } });
      expect(now.word?.message).toMatch(says);
      const why = expect.stringContaining("network.roce is False: AddressesMissing");
      expect(now.barredBy).toEqual(required ? [why] : []);
      const data = { onboarding_id: id, assignments: 2, applied: 1, bars_scheduling: required };
      const told = await toldOf(nodeId);
      expect(told).toMatchObject([{ data }]);
      expect(JSON.stringify(told[0]?.data), "the row is named").toMatch(/172\.30\./);
      if (!required) return;
      await mend();
      await removed(nodeId);
      await releasedInMaas((end.state as { maas_system_id: string }).maas_system_id);
      const again = await rig.start(n, profileId);
      expect((await arriving.drive(again.id)).status).toBe("completed");
      expect(await shown(again.nodeId)).toMatchObject({
        status: "active",
        word: { status: "True", reason: "AllSet" },
        barredBy: [],
      });
      expect(await toldOf(again.nodeId)).toEqual([]);
    },
  );
});

describe("a host that was removed", () => {
  const release = (nodeId: NodeId) =>
    rig.test.database.inTx((tx) => startDecommission(tx, nodeId, { mode: "release", reason: "comes back" }, "ann"));
  const releases = (systemId: string) => rig.maas.sim.region.state.counters[systemId]?.["release"] ?? 0;
  const told = async (id: WorkflowId) => (await listStageEvents(db(), id)).map(({ message }) => message).join("; ");

  it("without a release names the old node that left it deployed, and comes back as a new node after a release", async () => {
    const first = await onboarded(1);
    await removed(first.nodeId);
    expect(await bindingsOf(first.systemId)).toEqual([]);
    const again = await rig.start(1);
    const refused = await arriving.drive(again.id);
    expect(refused).toMatchObject({
      status: "failed_manual_intervention",
      failureCode: "left_deployed",
      evidence: { node_id: first.nodeId, maas_system_id: first.systemId },
    });
    expect(refused.failureMessage).toContain(`release-node ${first.nodeId}`);
    expect(refused.nextAction).toContain("rerun");
    const begun = await release(first.nodeId);
    for (let look = 0; look < 2; look += 1) await leaving.step(begun.decommission_id);
    expect(releases(first.systemId)).toBe(1);
    // A second onboarding cannot take the node's machine while the release of the node runs.
    await arriving.verb(again.id, "rerun");
    const meanwhile = await arriving.drive(again.id);
    expect(meanwhile).toMatchObject({ failureCode: "conflicting_candidates" });
    expect(meanwhile.failureMessage).toContain(`belongs to decommission ${begun.decommission_id}`);
    const end = await leaving.drive(begun.decommission_id);
    expect(end.status, await leaving.story(begun.decommission_id)).toBe("completed");
    expect(releases(first.systemId)).toBe(1);
    expect(await statusOf(first.nodeId)).toBe("deleted");
    await arriving.verb(again.id, "rerun");
    expect((await arriving.drive(again.id)).status, await arriving.story(again.id)).toBe("completed");
    expect(again.nodeId).not.toBe(first.nodeId);
    expect(await statusOf(again.nodeId)).toBe("active");
    expect(await bindingsOf(first.systemId)).toMatchObject([{ nodeId: again.nodeId }]);
    // An operator cannot release the machine of a deleted node, because the machine now belongs to a newer node.
    await expect(release(first.nodeId)).rejects.toMatchObject({ code: "conflict", message: /was released/ });
  });

  it("does not release a machine that has another use, another node or an onboarding since", async () => {
    const first = await onboarded(5);
    await removed(first.nodeId);
    const machine = rig.maas.sim.region.machine(first.systemId);
    machine.hostname = "put-to-another-use";
    const begun = await release(first.nodeId);
    expect(await leaving.drive(begun.decommission_id)).toMatchObject({
      status: "failed_manual_intervention",
      failureCode: "node_state_conflict",
      evidence: { maas_hostname: "put-to-another-use" },
    });
    await leaving.verb(begun.decommission_id, "cancel");
    expect((await leaving.drive(begun.decommission_id)).status).toBe("cancelled");
    expect(await told(begun.decommission_id)).toContain("Nothing was released; the node is deleted as before");
    expect([machine.status, releases(first.systemId)]).toEqual([6, 0]);
    machine.hostname = first.hostname;
    await releasedInMaas(first.systemId);
    const again = await rig.start(5);
    await arriving.drive(again.id, (row) => async (look) => {
      if (row.stage === "wait_for_ready")
        await expect(release(first.nodeId)).rejects.toMatchObject({
          code: "conflict",
          context: { onboarding_id: again.id },
        });
      await plainly(look);
    });
    expect(await statusOf(again.nodeId)).toBe("active");
    await expect(release(first.nodeId)).rejects.toMatchObject({
      code: "conflict",
      message: /is now node .*, which is active/,
    });
    expect(releases(first.systemId)).toBe(1);
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

  it("is refused when a request names its BMC", async () => {
    const { nodeId } = await onboarded(3);
    const request = named(3, "another-name");
    await expect(
      rig.test.database.inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" })),
    ).rejects.toMatchObject({ code: "conflict", errors: [{ pointer: "/ipmi_ip" }], context: { node_id: nodeId } });
  });

  it("is not touched when only MAAS shows that it is the same machine", async () => {
    const { nodeId, systemId } = await onboarded(4);
    // The test stores another BMC address for the node's machine, so that the hub accepts the onboarding request.
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
