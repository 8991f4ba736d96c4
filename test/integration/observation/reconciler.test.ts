import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { maasSiteProfiles, nodeDecommissions, nodeEvents, tasks } from "../../../hub/db/schema/index.ts";
import { enterDraining, retire } from "../../../hub/node/lifecycle.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { resolveDrift } from "../../../hub/reconciler/resolve.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { FleetRig } from "../../support/fleet-rig.ts";
import { until } from "../../support/until.ts";

let fleet: FleetRig;
beforeAll(async () => {
  fleet = await FleetRig.start(40);
  for (let n = 0; n < 10; n += 1) await fleet.nodeInService();
  fleet.watch();
  fleet.watch();
});
/** Before each test, `beforeEach` dates past status changes back by an hour, so that the breaker counts only the test's changes. */
beforeEach(async () => {
  await fleet.db.update(nodeEvents).set({ occurredAt: sql`occurred_at - interval '1 hour'` });
});
afterAll(() => fleet?.close());

const typesOf = async (nodeId: NodeId) => (await fleet.events(`nodes/${nodeId}`)).map((event) => event.type);
const reseedsOf = (nodeId: NodeId) =>
  fleet.db
    .select()
    .from(tasks)
    .where(and(eq(tasks.nodeId, nodeId), eq(tasks.type, "node.hw_sync_reseed")));
/** What the node's history says about its drift. */
const historyOf = async (nodeId: NodeId) => {
  const ofDrift = and(eq(nodeEvents.nodeId, nodeId), eq(nodeEvents.type, "drift"));
  const rows = await fleet.db.select().from(nodeEvents).where(ofDrift).orderBy(nodeEvents.id);
  return rows.map(({ owner, message }) => `${owner}: ${message}`);
};
const resolve = (nodeId: NodeId, action: "acknowledge" | "return_to_service") =>
  fleet.inTx((tx) => resolveDrift(tx, nodeId, { action, reason: "seen" }, "ann", new Date()));

describe("a node in service", () => {
  it("has no drift, and its last pass is recorded", async () => {
    const { nodeId } = await fleet.nodeInService();
    await fleet.sweep();
    const node = await fleet.node(nodeId);
    expect(node).toMatchObject({ status: "active", driftDetected: false, maasOwner: "admin" });
    expect(node.lastReconciledAt).not.toBeNull();
  });

  it("is quarantined once, with one alert, when its machine was released outside Muster", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    fleet.status(machine, "ready");
    await fleet.becomes(nodeId, "quarantined");
    const node = await fleet.drifted(nodeId, "released_outside");
    expect(node.quarantinedAt).not.toBeNull();
    expect(node.driftDetails).toMatchObject({ severity: "critical", maas_status: "Ready", maas_status_code: 4 });
    await fleet.sweep();
    const alerts = (await fleet.events(`nodes/${nodeId}`)).filter(({ data }) => data["rule"] === "released_outside");
    expect(alerts.map(({ type }) => type)).toEqual(["node.drift.detected"]);
  });

  it("is quarantined when its machine is gone from MAAS and a direct read confirms that", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    const { state } = fleet.rig.maas.sim.region;
    state.machines = state.machines.filter((one) => one !== machine);
    await fleet.sweep();
    expect(await fleet.becomes(nodeId, "quarantined")).toMatchObject({ driftDetails: { rule: "machine_deleted" } });
  });

  it("is quarantined when its deployed machine gets another owner", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    expect((await fleet.node(nodeId)).maasOwner).toBe("admin");
    fleet.change(machine, (one) => {
      one.owner = "bob";
    });
    expect(await fleet.becomes(nodeId, "quarantined")).toMatchObject({ driftDetails: { rule: "redeployed_outside" } });
  });

  it("has no drift when our own MAAS user is renamed, even if its agent is silent", async () => {
    const some = [await fleet.nodeInService(), await fleet.nodeInService()];
    await fleet.sweep();
    const machines = some.map(({ machine }) => machine);
    const owner = (name: string): void => {
      for (const machine of machines)
        fleet.change(machine, (one) => {
          one.owner = name;
        });
    };
    const [user] = fleet.rig.maas.sim.region.state.users;
    if (user === undefined) throw new Error("the region has no user");
    const before = user.username;
    user.username = "muster-dc1";
    owner("muster-dc1");
    try {
      await fleet.sweep();
      for (const { nodeId } of some) {
        const node = await fleet.node(nodeId);
        expect(node).toMatchObject({ status: "active", driftDetected: false, maasOwner: "muster-dc1" });
        const rules = (await fleet.events(`nodes/${nodeId}`)).map(({ data }) => data["rule"]);
        expect(rules).not.toContain("redeployed_outside");
      }
      owner("bob");
      for (const { nodeId } of some)
        expect(await fleet.becomes(nodeId, "quarantined")).toMatchObject({
          driftDetails: { rule: "redeployed_outside" },
        });
    } finally {
      user.username = before;
    }
  });

  it("stays active while its machine is commissioned, and the drift heals by itself", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    fleet.status(machine, "commissioning");
    expect((await fleet.drifted(nodeId, "recommissioned_outside")).status).toBe("active");
    fleet.status(machine, "deployed");
    const healed = await until("the drift heals", async () => {
      const node = await fleet.node(nodeId);
      return node.driftDetected ? undefined : node;
    });
    expect(healed.driftResolvedAt).not.toBeNull();
    expect(await typesOf(nodeId)).toContain("node.drift.resolved");
    expect((await historyOf(nodeId)).slice(-2)).toEqual([
      expect.stringMatching(/^reconciler: found recommissioned_outside \(\w+\): ./),
      "reconciler: recommissioned_outside is over: the node and its machine in MAAS agree again",
    ]);
    fleet.status(machine, "testing");
    expect(await fleet.drifted(nodeId, "recommissioned_outside")).toMatchObject({ driftResolvedAt: null });
    fleet.status(machine, "ready");
    await fleet.drifted(nodeId, "released_outside");
    expect((await historyOf(nodeId)).slice(-2)).toEqual([
      "reconciler: recommissioned_outside is no longer the most urgent drift of the node",
      expect.stringContaining("found released_outside"),
    ]);
  });

  it("gets the new address when its machine's address changes", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    expect((await fleet.node(nodeId)).host).toMatch(/^10\.99\.0\./);
    fleet.change(machine, () => fleet.address(machine, "10.99.1.7"));
    await until("the address", async () => ((await fleet.node(nodeId)).host === "10.99.1.7" ? true : undefined));
    expect(await fleet.node(nodeId)).toMatchObject({ driftDetected: false, status: "active" });
  });

  it("never gets the address of a RoCE link, even if MAAS lists it first", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    const { host } = await fleet.node(nodeId);
    const [boot] = machine.interfaces;
    if (boot === undefined) throw new Error("the machine has no interface");
    // The RoCE interface has a lower id than the boot interface, so MAAS lists the RoCE address first.
    const roce = {
      ...structuredClone(boot),
      name: "enp25s0np0",
      links: [{ id: 91_000, mode: "static" as const, subnetId: null, ipAddress: "172.30.0.1" }],
    };
    boot.id = fleet.rig.maas.sim.region.next("interface");
    machine.bootInterfaceId = boot.id;
    fleet.change(machine, (one) => one.interfaces.unshift(roce));
    await until("MAAS's list", async () =>
      (await fleet.node(nodeId)).lastMaasIps?.[0] === "172.30.0.1" ? true : undefined,
    );
    await fleet.sweep();
    expect(await fleet.node(nodeId)).toMatchObject({ host, driftDetected: false });
    fleet.change(machine, () => {
      for (const link of boot.links) link.ipAddress = "10.99.1.8";
    });
    await until("the address", async () => ((await fleet.node(nodeId)).host === "10.99.1.8" ? true : undefined));
  });

  it("has a drift when its machine is switched off", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    fleet.change(machine, (one) => {
      one.powerState = "off";
    });
    expect(await fleet.drifted(nodeId, "powered_off")).toMatchObject({ status: "active" });
  });

  it("gets its hardware sync switched on again, and one seeding task per interval", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    fleet.change(machine, (one) => {
      one.enableHwSync = false;
    });
    await fleet.drifted(nodeId, "hardware_sync_stopped");
    await until("MAAS is told to sync", async () => (machine.enableHwSync ? true : undefined));
    await fleet.sweep();
    fleet.change(machine, (one) => {
      one.enableHwSync = false;
    });
    await fleet.sweep();
    expect(await reseedsOf(nodeId)).toHaveLength(1);
  });

  it("is not judged while an operation holds it", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    const drain = { from: "active", to: "draining", owner: "admin_api", operationId: nodeId } as const;
    await fleet.inTx((tx) => moveNode(tx, nodeId, drain, "a drain"));
    fleet.status(machine, "ready");
    await fleet.sweep();
    expect(await fleet.node(nodeId)).toMatchObject({ status: "draining", driftDetected: false });
  });
});

describe("a quarantine by the reconciler", () => {
  const quarantined = async () => {
    const made = await fleet.nodeInService();
    await fleet.sweep();
    fleet.status(made.machine, "broken");
    await fleet.becomes(made.nodeId, "quarantined");
    return made;
  };

  it("ends by itself when the machine is deployed again and the agent has reported since", async () => {
    const { nodeId, machine } = await quarantined();
    await fleet.setConnected(nodeId, false);
    fleet.status(machine, "deployed");
    await fleet.sweep();
    expect(await fleet.node(nodeId)).toMatchObject({ status: "quarantined", driftDetails: { rule: "agent_offline" } });
    await fleet.setConnected(nodeId, true);
    await fleet.sweep();
    expect(await fleet.becomes(nodeId, "active")).toMatchObject({ quarantinedAt: null, driftDetected: false });
  });

  it("ends without a trace when the node retires", async () => {
    const { nodeId } = await quarantined();
    await fleet.inTx(async (tx) => {
      await enterDraining(tx, nodeId, nodeId, "drained");
      await retire(tx, nodeId, "drained");
    });
    await fleet.sweep();
    expect(await fleet.node(nodeId)).toMatchObject({ status: "retired", quarantinedAt: null, driftDetected: false });
  });

  it("can be ended by a person only if the machine is deployed", async () => {
    const { nodeId, machine } = await quarantined();
    await expect(resolve(nodeId, "return_to_service")).rejects.toMatchObject({ code: "conflict" });
    await fleet.setConnected(nodeId, false);
    fleet.status(machine, "deployed");
    await fleet.drifted(nodeId, "agent_offline");
    expect(await resolve(nodeId, "return_to_service")).toMatchObject({ status: "active" });
    expect(await fleet.node(nodeId)).toMatchObject({ status: "active", quarantinedAt: null });
    expect((await historyOf(nodeId)).at(-1)).toBe(
      "operator:ann: agent_offline is over: a person returned the node to service: seen",
    );
  });

  it("does not return for the same owner after a person has ended it", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    fleet.change(machine, (one) => {
      one.owner = "bob";
    });
    await fleet.becomes(nodeId, "quarantined");
    await resolve(nodeId, "return_to_service");
    await fleet.sweep();
    expect(await fleet.node(nodeId)).toMatchObject({ status: "active", driftDetected: false, maasOwner: "bob" });
  });

  it("heals although another drift is acknowledged, and the acknowledgement is forgotten", async () => {
    const { nodeId, machine } = await fleet.nodeInService();
    await fleet.sweep();
    fleet.status(machine, "commissioning");
    await fleet.drifted(nodeId, "recommissioned_outside");
    await resolve(nodeId, "acknowledge");
    fleet.status(machine, "testing");
    await fleet.drifted(nodeId, "recommissioned_outside");
    fleet.status(machine, "commissioning");
    const beside = await until("the other drift to be over", async () => {
      const node = await fleet.node(nodeId);
      return node.driftDetected ? undefined : node;
    });
    expect(beside.driftAcknowledged).toMatchObject({ rule: "recommissioned_outside", maas_status_code: 1 });
    fleet.status(machine, "deployed");
    const forgotten = () =>
      until("the acknowledgement to be forgotten", async () =>
        (await fleet.node(nodeId)).driftAcknowledged === null ? true : undefined,
      );
    await forgotten();
    // The hub also forgets an acknowledgement when the acknowledged drift and another drift of the node end at the same time.
    fleet.status(machine, "commissioning");
    await fleet.drifted(nodeId, "recommissioned_outside");
    await resolve(nodeId, "acknowledge");
    fleet.status(machine, "testing");
    await fleet.drifted(nodeId, "recommissioned_outside");
    fleet.status(machine, "deployed");
    await forgotten();
  });

  it("is no drift once acknowledged, and raises a new drift when its cause changes", async () => {
    const { nodeId, machine } = await quarantined();
    await resolve(nodeId, "acknowledge");
    await fleet.sweep();
    expect(await fleet.node(nodeId)).toMatchObject({ driftDetected: false, status: "quarantined" });
    expect((await historyOf(nodeId)).at(-1)).toMatch(/^operator:ann: \w+ is acknowledged by a person: seen$/);
    fleet.status(machine, "ready");
    expect(await fleet.drifted(nodeId, "released_outside")).toMatchObject({ status: "quarantined" });
  });
});

describe("a retired node's machine", () => {
  const retired = async () => {
    const made = await fleet.nodeInService();
    await fleet.sweep();
    await fleet.inTx(async (tx) => {
      await enterDraining(tx, made.nodeId, made.nodeId, "drained");
      await retire(tx, made.nodeId, "drained");
    });
    return made;
  };
  const releasesOf = (nodeId: NodeId) =>
    fleet.db.select().from(nodeDecommissions).where(eq(nodeDecommissions.nodeId, nodeId));
  const retiredAgo = (nodeId: NodeId, seconds: number) =>
    fleet.db
      .update(nodeEvents)
      .set({ occurredAt: sql`now() - make_interval(secs => ${seconds})` })
      .where(eq(nodeEvents.nodeId, nodeId));

  it("is kept for the time in the profile, then released once by an operation of its own", async () => {
    const { nodeId } = await retired();
    await fleet.sweep();
    expect((await fleet.drifted(nodeId, "retired_but_deployed")).driftDetails?.action).toBe("none");
    expect(await releasesOf(nodeId)).toEqual([]);
    await retiredAgo(nodeId, 3_601);
    await fleet.sweep();
    await fleet.setConnected(nodeId, true);
    await fleet.sweep();
    await fleet.sweep();
    expect(await releasesOf(nodeId)).toMatchObject([{ mode: "release" }]);
  });

  it("is not released by the hub while its profile asks a second person for a release", async () => {
    const { nodeId } = await retired();
    const asks = (secondPerson: "full_decommission"[]) => fleet.db.update(maasSiteProfiles).set({ secondPerson });
    await asks(["full_decommission"]);
    try {
      await retiredAgo(nodeId, 3_601);
      await fleet.setConnected(nodeId, true);
      for (const _turn of [1, 2, 3]) await fleet.sweep();
      expect((await fleet.drifted(nodeId, "retired_but_deployed")).driftDetails?.action).toBe("none");
      expect(await releasesOf(nodeId)).toEqual([]);
    } finally {
      await asks([]);
    }
  });

  it("is not released when our own user has released and deployed it again in the meantime", async () => {
    const { nodeId, machine } = await retired();
    await fleet.setConnected(nodeId, false);
    fleet.status(machine, "ready");
    await fleet.sweep();
    // The test moves the node's retirement into the past only after the release of the node's machine. The reconciler may rightly release a deployed
    // machine whose node has been retired for an hour.
    await retiredAgo(nodeId, 3_601);
    fleet.status(machine, "deployed");
    await fleet.sweep();
    await fleet.setConnected(nodeId, true);
    await fleet.sweep();
    expect((await fleet.drifted(nodeId, "retired_but_deployed")).driftDetails?.action).toBe("none");
    expect(await releasesOf(nodeId)).toEqual([]);
  });

  it("is not released while it is locked or a person has acknowledged the drift", async () => {
    const { nodeId, machine } = await retired();
    fleet.change(machine, (one) => {
      one.locked = true;
    });
    await fleet.sweep();
    await retiredAgo(nodeId, 3_601);
    await fleet.sweep();
    expect((await fleet.drifted(nodeId, "retired_but_deployed")).driftDetails?.message).toContain("is locked");
    await resolve(nodeId, "acknowledge");
    fleet.change(machine, (one) => {
      one.locked = false;
    });
    await fleet.sweep();
    expect(await releasesOf(nodeId)).toEqual([]);
  });
});
