/** The power of a host whose allocation ends or whose machine somebody repairs, and the share of one site in the hub's work. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { releaseAllocation } from "../../../hub/allocations/end-allocation.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readAllocation } from "../../../hub/db/queries/allocations.ts";
import { claimPowerActions, newestPowerActions } from "../../../hub/db/queries/power-actions.ts";
import { nodes, powerActions } from "../../../hub/db/schema/index.ts";
import { requestNodePower } from "../../../hub/power/request-power.ts";
import { claimRepair } from "../../../hub/repair/claim-repair.ts";
import { openByOperator } from "../../../hub/repair/open-repair.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { type AllocationId, NodeId, SiteId } from "../../../shared/ids.ts";
import { makeSchedulable, SSH_KEY } from "../../support/allocatable-node.ts";
import { ANN, asked, PowerRig } from "../../support/power-rig.ts";

let power: PowerRig;
beforeAll(async () => {
  power = await PowerRig.start(10);
});
afterAll(() => power?.close());

const source = {
  actor: "ann",
  reason: "the tenant is done",
  forced: false,
  role: "admin",
  ip: null,
  requestId: null,
} as const;
const release = (id: AllocationId) =>
  power.fleet.inTx((tx) => releaseAllocation(tx, workflowsOf(power.fleet.rig.services), id, source));
const newest = async (nodeId: NodeId) => {
  const action = (await newestPowerActions(power.fleet.db, [nodeId])).get(nodeId);
  if (action === undefined) throw new Error("the node has no power action");
  return action;
};

it("a host whose allocation is released during its shutdown goes off, and is powered on for the cleaning", async () => {
  const { id, nodeId, machine, box } = await power.instance();
  box.hangs = true;
  const off = await power.ask(id, "off");
  await power.waitsFor(off.id, "The host's system to shut down");
  const { now } = await release(id);
  expect(now).toMatchObject({ status: "ending", decommissionId: expect.any(String) });
  await power.go();
  expect(await power.read(off.id)).toMatchObject({ state: "superseded" });
  const on = await newest(nodeId);
  expect(on).toMatchObject({ verb: "on", forCleaning: true, shutdownAcceptedAt: expect.any(Date) });
  // The agent still speaks, but the host may follow the shutdown at any moment.
  await power.boot(nodeId, "boot");
  await power.go();
  expect(await power.read(on.id)).toMatchObject({ state: "running", onAskedAt: null });
  box.power = "off";
  await power.waitsFor(on.id, "The agent of the host to connect");
  expect(power.counts(machine)).toMatchObject({ shutdown: 1, power_on: 1 });
  await power.boot(nodeId, "boot-2");
  await power.becomes(on.id, "done");
  expect(await readAllocation(power.fleet.db, id), "the cleaning goes on").toMatchObject({ status: "ending" });
});

it("a host that did not come on for its cleaning is tried again half an hour later, and no sooner", async () => {
  const { id, nodeId, machine } = await power.instance();
  const off = await power.ask(id, "off");
  await power.becomes(off.id, "done");
  await release(id);
  await power.go();
  const first = await newest(nodeId);
  expect(first).toMatchObject({ verb: "on", forCleaning: true });
  await power.fleet.db.update(powerActions).set({ deadlineAt: sql`now()` }).where(eq(powerActions.id, first.id));
  const refused = { match: { op: "query_power_state" }, kind: "status", code: 503, times: 1e6 } as const;
  power.fleet.rig.maas.sim.faults.add(refused);
  await power.becomes(first.id, "failed");
  power.fleet.rig.maas.sim.faults.clear();
  await power.go();
  expect((await newest(nodeId)).id, "at once").toBe(first.id);
  const longAgo = sql`now() - interval '31 minutes'`;
  await power.fleet.db.update(powerActions).set({ finishedAt: longAgo }).where(eq(powerActions.id, first.id));
  await power.go();
  const second = await newest(nodeId);
  expect(second).toMatchObject({ verb: "on", forCleaning: true, state: "running" });
  expect(second.id).not.toBe(first.id);
  await power.waitsFor(second.id, "The agent of the host to connect");
  expect(power.counts(machine)["power_on"]).toBeGreaterThanOrEqual(1);
  await power.boot(nodeId, "boot-2");
  await power.becomes(second.id, "done");
});

it("who has claimed a repair with access switches the machine, also under its own account, and nobody else does", async () => {
  const { fleet } = power;
  const { nodeId, machine } = await fleet.nodeInService();
  await fleet.inTx((tx) => makeSchedulable(tx, nodeId));
  const box = fleet.rig.maas.sim.region.hardwareOf(machine);
  if (box !== undefined) box.power = "on";
  const issue = { category: "Hardware" as const, summary: "GPU 3 fell off the bus", details: null };
  const body = { node_id: nodeId, machine_health_issue: issue, request: true, reason: "seen" };
  const { id } = await fleet.inTx((tx) => openByOperator(tx, body, "ann"));
  const fixer = { name: "fixer-1", tenant: "fixers" };
  const access = { login_user: "fixer", ssh_keys: [SSH_KEY], root: false };
  const claimed = await fleet.inTx((tx) => claimRepair(tx, id, fixer, { reason: "r", hours: 1, access }));
  const allocationId = claimed.accessAllocationId;
  if (allocationId === null) throw new Error("the claim gave no access");
  await expect(power.ask(allocationId, "cycle", { by: ANN }), "an operator").rejects.toMatchObject({
    code: "conflict",
  });
  const ofNode = (by: typeof fixer | typeof ANN) =>
    fleet.inTx((tx) => requestNodePower(tx, nodeId, { ...asked("cycle", { by }), knowsTenant: true }));
  await expect(ofNode(ANN), "an operator who knows of the tenant").rejects.toMatchObject({ code: "conflict" });
  const cycle = await power.ask(allocationId, "cycle", { by: { name: "fixer-2", tenant: "fixers" } });
  await power.waitsFor(cycle.id, "The machine to stay off for 60 s");
  expect(power.counts(machine)).toMatchObject({ power_off: 1 });
  await fleet.db
    .update(powerActions)
    .set({ offSeenAt: sql`now() - interval '1 minute'` })
    .where(eq(powerActions.id, cycle.id));
  await power.waitsFor(cycle.id, "The agent of the host to connect");
  await power.boot(nodeId, "boot-2");
  await power.becomes(cycle.id, "done");
});

it("one site takes at most its share of the places, so that the actions of another site go on", async () => {
  const { db } = power.fleet;
  const [slow, other] = [SiteId.parse(randomUUID()), SiteId.parse(randomUUID())];
  const action = (siteId: SiteId, minutesDue: number) =>
    ({
      ...{ nodeId: NodeId.parse(randomUUID()), hostname: "h", generation: 0, siteId, maasSystemId: "m" },
      ...{
        verb: "cycle" as const,
        immediate: false,
        requestedBy: "ann",
        reason: "r",
        deadlineAt: sql`now() + interval '1 hour'`,
      },
      wakeAt: sql`now() - make_interval(mins => ${minutesDue})`,
    }) as const;
  const rows = [...Array.from({ length: 20 }, (_, n) => action(slow, 60 - n)), action(other, 1), action(other, 2)];
  await db.delete(powerActions).where(eq(powerActions.state, "running"));
  await db.insert(powerActions).values(rows);
  const claim = async () => {
    const claims = await power.fleet.inTx((tx) => claimPowerActions(tx, { most: 16, mostOfSite: 8, leaseSeconds: 60 }));
    const ofSite = (site: SiteId) => claims.filter(({ action: { siteId } }) => siteId === site).length;
    return [ofSite(slow), ofSite(other)];
  };
  expect(await claim()).toEqual([8, 2]);
  expect(await claim(), "while the claims last").toEqual([0, 0]);
  const three = sql`id in (select id from power_actions where site_id = ${slow} and claimed_until is not null order by wake_at limit 3)`;
  await db.update(powerActions).set({ claimedUntil: null, wakeAt: sql`now() + interval '1 hour'` }).where(three);
  expect(await claim(), "after three claims have ended").toEqual([3, 0]);
  await db
    .update(powerActions)
    .set({ claimedUntil: sql`now() - interval '1 second'` })
    .where(eq(powerActions.siteId, slow));
  expect(await claim(), "after the hub of all claims has died").toEqual([8, 0]);
  await db.delete(powerActions).where(sql`site_id in (${slow}, ${other})`);
  await db.delete(nodes).where(eq(nodes.hostname, "h"));
});
