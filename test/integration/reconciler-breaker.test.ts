import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listBreakers, resetBreaker } from "../../hub/db/queries/reconciler-breakers.ts";
import { ACCEPT_SECONDS } from "../../hub/reconciler/breaker.ts";
import { type FleetNode, FleetRig } from "../support/fleet-rig.ts";
import { until } from "../support/until.ts";

/** A region that suddenly says that much of the fleet is gone is not believed (decision F1). */
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

  it("trips when more come within minutes: nothing is moved, and one alert is raised", async () => {
    for (const { machine } of made.slice(3, 6))
      fleet.change(machine, () => fleet.rig.maas.sim.region.forceStatus(machine, 8));
    expect(await tripped()).toMatchObject({ wouldMove: 3, moveLimit: 5, inService: 12 });
    await fleet.sweep();
    expect(await statuses()).toEqual({ active: 9, quarantined: 3 });
    const alerts = await fleet.events(`maas-sites/${fleet.siteId}`);
    expect(alerts).toHaveLength(1);
    expect(alerts[0]).toMatchObject({ type: "site.breaker.tripped", data: { severity: "critical", would_move: 3 } });
  });

  it("shows what it holds back", async () => {
    const { nodeId } = made[3] as FleetNode;
    const drifted = await fleet.drifted(nodeId, "hardware_failure");
    expect(drifted.driftDetails?.held_back).toContain("breaker is open");
    expect((await breaker())?.nodeIds).toContain(nodeId);
  });

  it("trips again after a reset while it is still so", async () => {
    await reset(0);
    await fleet.sweep();
    expect(await tripped()).toMatchObject({ wouldMove: 3 });
    expect(await statuses()).toEqual({ active: 9, quarantined: 3 });
  });

  it("lets everything through once a person has said that it is true", async () => {
    await reset(ACCEPT_SECONDS);
    await fleet.sweep();
    await until("six quarantined", async () => ((await statuses())["quarantined"] === 6 ? true : undefined));
    expect((await fleet.node((made[3] as FleetNode).nodeId)).driftDetails?.held_back).toBeNull();
  });
});
