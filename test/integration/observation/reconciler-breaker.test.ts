import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, inArray, sql } from "../../../hub/db/orm.ts";
import { listBreakers, resetBreaker } from "../../../hub/db/queries/reconciler-breakers.ts";
import { agentSessions, nodeConditions, nodeEvents, reconcilerBreakers } from "../../../hub/db/schema/index.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { sweepOffline } from "../../../hub/node/offline-sweep.ts";
import { ACCEPT_SECONDS } from "../../../hub/reconciler/breaker.ts";
import { offlineBreaker } from "../../../hub/reconciler/offline-breaker.ts";
import { type FleetNode, FleetRig } from "../../support/fleet-rig.ts";
import { until } from "../../support/until.ts";

/** If a region suddenly reports that many machines are gone, the breaker stops the reconciler (decision F1). */
let fleet: FleetRig;
const made: FleetNode[] = [];
beforeAll(async () => {
  fleet = await FleetRig.start(12);
  for (let n = 0; n < 12; n += 1) made.push(await fleet.nodeInService());
  fleet.watch();
  fleet.watch();
});
afterAll(() => fleet?.close());

const statuses = async () => {
  const all = await Promise.all(made.map(({ nodeId }) => fleet.node(nodeId)));
  return Object.fromEntries(
    [...new Set(all.map(({ status }) => status))].map((status) => [
      status,
      all.filter((one) => one.status === status).length,
    ]),
  );
};
const breaker = async () => (await listBreakers(fleet.db))[0];
const reset = (acceptSeconds: number) =>
  fleet.inTx((tx) => resetBreaker(tx, fleet.siteId, "quarantine", { by: "ann", reason: "looked", acceptSeconds }));
const tripped = () =>
  until("the breaker to trip", async () => ((await breaker())?.trippedAt != null ? await breaker() : undefined));

describe("the breaker of a site", () => {
  it("lets a few nodes be quarantined", async () => {
    await fleet.sweep();
    for (const { machine } of made.slice(0, 3)) fleet.status(machine, "ready");
    await until("three quarantined", async () => ((await statuses())["quarantined"] === 3 ? true : undefined));
    expect(await breaker()).toBeUndefined();
  });

  it("trips when more nodes follow within minutes: no node changes status, and one alert is raised", async () => {
    for (const { machine } of made.slice(3, 6))
      fleet.change(machine, () => fleet.rig.maas.sim.region.forceStatus(machine, 8));
    expect(await tripped()).toMatchObject({ wouldMove: 3, moved: 3, moveLimit: 5, inService: 12 });
    await fleet.sweep();
    expect(await statuses()).toEqual({ active: 9, quarantined: 3 });
    const alerts = await fleet.events(`maas-sites/${fleet.siteId}`);
    expect(alerts).toHaveLength(1);
    expect(alerts[0]).toMatchObject({
      type: "site.breaker.tripped",
      data: {
        severity: "critical",
        would_move: 3,
        moved: 3,
        message: expect.stringMatching(
          /^6 nodes .* become quarantined within 10 minutes, and the limit is 5 of 12 in service\. 3 have changed, and 3 wait/,
        ),
      },
    });
  });

  it("shows which nodes it holds back", async () => {
    const { nodeId } = made[3] as FleetNode;
    const drifted = await fleet.drifted(nodeId, "hardware_failure");
    expect(drifted.driftDetails?.held_back).toContain("breaker is open");
    expect((await breaker())?.nodeIds).toContain(nodeId);
  });

  it("trips again after a reset while the drift remains", async () => {
    await reset(0);
    await fleet.sweep();
    expect(await tripped()).toMatchObject({ wouldMove: 3 });
    expect(await statuses()).toEqual({ active: 9, quarantined: 3 });
  });

  it("lets all status changes through after a person has accepted them", async () => {
    await reset(ACCEPT_SECONDS);
    await fleet.sweep();
    await until("six quarantined", async () => ((await statuses())["quarantined"] === 6 ? true : undefined));
    expect((await fleet.node((made[3] as FleetNode).nodeId)).driftDetails?.held_back).toBeNull();
  });
});

describe("silent agents after an outage of the hub", () => {
  const sweep = (afterOutage: boolean) =>
    sweepOffline({ inTx: fleet.inTx, upForMs: 600_000, silenceMs: 0, holdBack: offlineBreaker, afterOutage });
  const silent = (nodes: readonly FleetNode[]) =>
    fleet.db
      .update(agentSessions)
      .set({ lastSeenAt: new Date(Date.now() - 3_600_000) })
      .where(
        inArray(
          agentSessions.nodeId,
          nodes.map((one) => one.nodeId),
        ),
      );
  const active: FleetNode[] = [];
  const offlineBreakerRow = async () => (await listBreakers(fleet.db)).find((one) => one.kind === "offline");

  /**
   * The reconciler may lock a node's row for a moment, and the sweep for silent agents skips a locked row. `allOffline` repeats the sweep until all
   * nodes are offline, because the sweep skips locked rows.
   */
  const allOffline = (afterOutage: boolean, nodes = active) =>
    until("all to be offline", async () => {
      await sweep(afterOutage);
      const now = await Promise.all(nodes.map(({ nodeId }) => fleet.node(nodeId)));
      return now.every(({ status }) => status === "offline") ? true : undefined;
    });

  it("do not become offline when they are many, but their conditions become Unknown", async () => {
    for (const one of made) if ((await fleet.node(one.nodeId)).status === "active") active.push(one);
    expect(active).toHaveLength(6);
    await silent(active);
    expect(await sweep(true)).toMatchObject({ offline: 0 });
    expect(await offlineBreakerRow()).toMatchObject({ wouldMove: 6, moveLimit: 5 });
    expect(await sweep(true)).toMatchObject({ offline: 0 });
    const [condition] = await fleet.db
      .select()
      .from(nodeConditions)
      .where(
        and(eq(nodeConditions.nodeId, (active[0] as FleetNode).nodeId), eq(nodeConditions.type, "agent.connected")),
      );
    expect(condition).toMatchObject({ status: "Unknown", reason: "Silent" });
  });

  it("become offline after a person has accepted the breaker", async () => {
    await fleet.inTx((tx) =>
      resetBreaker(tx, fleet.siteId, "offline", { by: "ann", reason: "a switch burnt", acceptSeconds: 60 }),
    );
    await allOffline(true);
  });

  const silentSinceTheTrip = async (nodes: readonly FleetNode[]) => {
    for (const { nodeId } of nodes) {
      await fleet.setConnected(nodeId, true);
      if ((await fleet.node(nodeId)).status === "offline")
        await fleet.inTx((tx) => moveNode(tx, nodeId, { from: "offline", to: "active", owner: "heartbeat" }, "back"));
    }
    await silent(nodes);
  };
  const openSince = (ago: string) =>
    fleet.db
      .update(reconcilerBreakers)
      .set({ trippedAt: sql`now() - ${ago}::interval`, resetAt: null, acceptUntil: null })
      .where(eq(reconcilerBreakers.kind, "offline"));

  it("become offline one by one beside an open breaker if they were heard of after it tripped", async () => {
    const [first, ...others] = active as [FleetNode, ...FleetNode[]];
    await silentSinceTheTrip([first]);
    await openSince("30 days");
    for (const { nodeId } of others) {
      await fleet.inTx((tx) => moveNode(tx, nodeId, { from: "offline", to: "active", owner: "heartbeat" }, "back"));
      const heard = { lastSeenAt: sql`now() - interval '31 days'` };
      await fleet.db.update(agentSessions).set(heard).where(eq(agentSessions.nodeId, nodeId));
    }
    // The test dates the nodes' changes to offline back by an hour, so that the breaker no longer counts the changes. In the next outage, the breaker
    // does not count nodes that it kept online in the first outage.
    await fleet.db.update(nodeEvents).set({ occurredAt: sql`occurred_at - interval '1 hour'` });
    await allOffline(true, [first]);
    expect(await sweep(false)).toMatchObject({ offline: 0 });
    for (const { nodeId } of others) expect((await fleet.node(nodeId)).status).toBe("active");
  });

  it("are held back again with a new alert when many are silent after another outage", async () => {
    await silentSinceTheTrip(active);
    const alerts = async () =>
      (await fleet.events(`maas-sites/${fleet.siteId}`)).filter(({ data }) => data["kind"] === "offline").length;
    const before = await alerts();
    expect(await sweep(true)).toMatchObject({ offline: 0 });
    expect(await alerts()).toBe(before + 1);
    expect((await offlineBreakerRow())?.trippedAt?.getTime()).toBeGreaterThan(Date.now() - 600_000);
    expect(await sweep(false)).toMatchObject({ offline: 0 });
    expect(await alerts()).toBe(before + 1);
  });

  it("become offline at once if the hub was up all the time", async () => {
    await silentSinceTheTrip(active);
    await fleet.db.delete(reconcilerBreakers);
    await allOffline(false);
  });
});
