import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { listBreakers } from "../../../hub/db/queries/reconciler-breakers.ts";
import { maasMachines, maasSiteWatches } from "../../../hub/db/schema/index.ts";
import { STATUS } from "../../fakes/maas/state/statuses.ts";
import { type FleetNode, FleetRig } from "../../support/fleet-rig.ts";
import { until } from "../../support/until.ts";

/**
 * Somebody restores the MAAS region from a backup that is older than the deploys of the hub's nodes. After the restore of the MAAS region, the
 * region's events, machine states and tokens are old.
 */
describe("a region that was restored from a backup", () => {
  let fleet: FleetRig;
  const made: FleetNode[] = [];
  let backup: string;
  beforeAll(async () => {
    fleet = await FleetRig.start(8);
    for (let n = 0; n < 8; n += 1) made.push(await fleet.nodeInService());
    const { region } = fleet.rig.maas.sim;
    for (const { machine } of made) {
      region.forceStatus(machine, STATUS.ready);
      region.setOwner(machine, null);
    }
    backup = JSON.stringify(region.state);
    for (const { machine } of made)
      fleet.change(machine, () => {
        region.forceStatus(machine, STATUS.deployed);
        region.setOwner(machine, "admin");
      });
    fleet.watch();
    await fleet.sweep();
  });
  afterAll(() => fleet?.close());

  const watch = async () => {
    const rows = await fleet.db.select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, fleet.siteId));
    const [row] = rows;
    if (row === undefined) throw new Error("nobody watches the site");
    return row;
  };
  const statuses = async () => Promise.all(made.map(async ({ nodeId }) => (await fleet.node(nodeId)).status));
  const allActive = Array.from({ length: 8 }, () => "active");

  it("does not know our token: the polls fail with that reason and continue", async () => {
    const { state } = fleet.rig.maas.sim.region;
    const restored = JSON.parse(backup) as typeof state;
    Object.assign(state, restored, { users: restored.users.map((user) => ({ ...user, tokens: [] })) });
    await until("two polls to fail", async () => {
      const row = await watch();
      return row.lastErrorCode === "unauthorized" && row.consecutiveFailures >= 2 ? true : undefined;
    });
    expect(await statuses()).toEqual(allActive);
  });

  it("is swept once it accepts the token, and no machine becomes absent and no node changes status", async () => {
    const before = await watch();
    const { state } = fleet.rig.maas.sim.region;
    Object.assign(state, { users: (JSON.parse(backup) as typeof state).users });
    await until("the breaker to trip", async () =>
      (await listBreakers(fleet.db))[0]?.trippedAt != null ? true : undefined,
    );
    await fleet.sweep();
    const after = await watch();
    expect(after.lastSweepAt?.getTime()).toBeGreaterThan(before.lastSweepAt?.getTime() ?? 0);
    expect(after.eventCursor).toBeLessThan(before.eventCursor ?? 0);
    expect(after).toMatchObject({ consecutiveFailures: 0, lastErrorCode: null });
    const machines = await fleet.db.select().from(maasMachines).where(eq(maasMachines.siteId, fleet.siteId));
    expect(machines.map(({ status, absent }) => [status, absent])).toEqual(made.map(() => [STATUS.ready, false]));
    expect(await statuses()).toEqual(allActive);
  });

  it("without our machines: a direct read confirms that they are gone, and no node changes status", async () => {
    const { region } = fleet.rig.maas.sim;
    region.state.machines = [];
    await fleet.sweep();
    await until("all are absent", async () => {
      const rows = await fleet.db.select().from(maasMachines).where(eq(maasMachines.siteId, fleet.siteId));
      return rows.every(({ absent }) => absent) ? true : undefined;
    });
    await fleet.sweep();
    expect(await statuses()).toEqual(allActive);
  });
});
