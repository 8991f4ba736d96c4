/** The power of instances' machines at a simulated MAAS: each verb to its end, what refuses it, and that a host that is off by request is no fault. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readAllocation } from "../../../hub/db/queries/allocations.ts";
import { failRunningPowerActions, newestPowerActions } from "../../../hub/db/queries/power-actions.ts";
import { agentSessions, allocations, nodes, powerActions } from "../../../hub/db/schema/index.ts";
import { isOpen, toInstances } from "../../../hub/http/routes/instance-rows.ts";
import { sweepOffline } from "../../../hub/node/offline-sweep.ts";
import { requestNodePower } from "../../../hub/power/request-power.ts";
import { startDecommission } from "../../../hub/workflows/decommission/start-decommission.ts";
import type { AllocationId, NodeId, PowerActionId } from "../../../shared/ids.ts";
import type { PowerVerb } from "../../../shared/power.ts";
import type { FleetRig } from "../../support/fleet-rig.ts";
import { asked, PowerRig } from "../../support/power-rig.ts";

let power: PowerRig;
let fleet: FleetRig;
beforeAll(async () => {
  power = await PowerRig.start(20);
  fleet = power.fleet;
});
afterAll(() => power?.close());

const refusal = (id: AllocationId, verb: PowerVerb = "off") =>
  power.ask(id, verb).then(
    () => "accepted",
    (error: { code: string }) => error.code,
  );
const shown = async (id: AllocationId) => {
  const row = await readAllocation(fleet.db, id);
  if (row === null || !isOpen(row)) throw new Error("no open allocation");
  const [one] = await toInstances(fleet.db, [row]);
  return one;
};

/** Lets the node's agent fall silent, and returns the nodes that the breaker was asked about. */
async function fallSilent(nodeId: NodeId): Promise<readonly NodeId[]> {
  await fleet.db
    .update(agentSessions)
    .set({ lastSeenAt: sql`now() - interval '10 minutes'` })
    .where(eq(agentSessions.nodeId, nodeId));
  const counted: NodeId[] = [];
  const holdBack = async (_: unknown, silent: readonly { id: NodeId }[]) => {
    counted.push(...silent.map((one) => one.id));
    return new Set<NodeId>();
  };
  await sweepOffline({ inTx: fleet.inTx, upForMs: 600_000, holdBack, afterOutage: false });
  return [...new Set(counted)].filter((one) => one === nodeId);
}
const returns = async (nodeId: NodeId) => {
  await sweepOffline({ inTx: fleet.inTx, upForMs: 600_000, holdBack: async () => new Set(), afterOutage: false });
  await fleet.becomes(nodeId, "active");
};

describe("an instance", () => {
  it("is shut down and stays off without a fault, and is powered on again", async () => {
    const { id, nodeId, machine } = await power.instance();
    const off = await power.ask(id, "off");
    await power.go();
    expect(await shown(id)).toMatchObject({ status: "Stopped", power_action: { verb: "off", state: "running" } });
    await power.becomes(off.id, "done");
    expect(power.counts(machine)).toMatchObject({ shutdown: 1, power_off: 0 });
    expect(await fallSilent(nodeId), "the breaker counts no silence by request").toEqual([]);
    expect((await fleet.node(nodeId)).status).toBe("offline");
    expect(await shown(id)).toMatchObject({ status: "Stopped", next_action: expect.stringContaining("power-on") });

    const on = await power.ask(id, "on");
    await power.waitsFor(on.id, "The agent of the host to connect");
    expect((await shown(id))?.status).toBe("Rebooting");
    await power.boot(nodeId, "boot-2");
    await power.becomes(on.id, "done");
    await returns(nodeId);
    expect(await fallSilent(nodeId), "a later silence is a fault").toEqual([nodeId]);
    const events = await fleet.events(`allocations/${id}`);
    expect(events.map(({ data }) => `${data["verb"]} ${data["state"]} ${data["tenant"]}`)).toEqual([
      "off running acme",
      "off done acme",
      "on running acme",
      "on done acme",
    ]);
  });

  it("that hangs is switched off after the time for its shutdown, and reboots only by another boot", async () => {
    const { id, nodeId, machine, box } = await power.instance();
    box.hangs = true;
    const reboot = await power.ask(id, "reboot");
    await power.waitsFor(reboot.id, "The host's system to shut down");
    await fleet.db.update(powerActions).set({ shutdownAcceptedAt: sql`now() - interval '5 minutes'` });
    await power.waitsFor(reboot.id, "The agent of the host to connect");
    expect(power.counts(machine)).toMatchObject({ shutdown: 1, power_off: 1, power_on: 1 });
    await power.boot(nodeId, "boot");
    await power.waitsFor(reboot.id, "The agent of the host to connect");
    await power.boot(nodeId, "boot-2");
    expect(await power.becomes(reboot.id, "done")).toMatchObject({ errorCode: null, bootId: "boot" });
  });

  it("is switched off for a minute by a cycle, at once", async () => {
    const { id, nodeId, machine } = await power.instance();
    const cycle = await power.ask(id, "cycle");
    await power.waitsFor(cycle.id, "The machine to stay off for 60 s");
    await fleet.db.update(powerActions).set({ offSeenAt: sql`now() - interval '1 minute'` });
    await power.waitsFor(cycle.id, "The agent of the host to connect");
    await power.boot(nodeId, "boot-2");
    await power.becomes(cycle.id, "done");
    expect(power.counts(machine)).toMatchObject({ shutdown: 0, power_off: 1, power_on: 1 });
  });

  it("has one action at a time, none while an operation or a repair has its machine, and six within an hour", async () => {
    const { id, nodeId } = await power.instance();
    const first = await power.ask(id, "off");
    expect(await refusal(id, "on")).toBe("operation_exists");
    await fleet.db.delete(powerActions).where(eq(powerActions.id, first.id));
    const claimed = sql`insert into repair_cases (node_id, hostname, mode, state, category, summary, opened_by, claimed_by, claim_until)
      values (${nodeId}, 'h', 'online', 'claimed', 'Other', 's', 'ann', 'bob', now() + interval '1 hour')`;
    await fleet.db.execute(claimed);
    expect(await refusal(id)).toBe("conflict");
    const bob = { by: { name: "bob", tenant: null } };
    const { id: bobs } = await power.ask(id, "off", bob);
    await fleet.db.execute(sql`delete from repair_cases where node_id = ${nodeId}`);
    const ended = { state: "superseded", finishedAt: sql`now()` } as const;
    await fleet.db.update(powerActions).set(ended).where(eq(powerActions.id, bobs));
    // Switching a host on does not wear it out, so it neither counts nor is limited.
    for (const verb of ["on", "on", "cycle", "off", "reboot", "off", "cycle"] as const) {
      const { id: action } = await power.ask(id, verb);
      await fleet.db.update(powerActions).set(ended).where(eq(powerActions.id, action));
    }
    for (const verb of ["off", "cycle", "reboot"] as const) expect(await refusal(id, verb)).toBe("rate_limited");
    const { id: last } = await power.ask(id, "on");
    await fleet.db.update(powerActions).set(ended).where(eq(powerActions.id, last));
    await fleet.db.update(powerActions).set({ requestedAt: sql`now() - interval '2 hours'` });
    await fleet.db.update(allocations).set({ status: "ending" }).where(eq(allocations.id, id));
    expect(await refusal(id)).toBe("conflict");
    const request = { mode: "soft_reset", reason: "r", agent_wait_seconds: 0, storage_cleanup: "all" } as const;
    await fleet.inTx((tx) => startDecommission(tx, nodeId, request, "ann"));
    await fleet.db.update(allocations).set({ status: "active" }).where(eq(allocations.id, id));
    expect(await refusal(id)).toBe("operation_exists");
  });

  it("whose machine somebody works on, or whose BMC refuses the login, is left alone", async () => {
    const [broken, barred, moved] = [await power.instance(), await power.instance(), await power.instance()];
    fleet.status(broken.machine, "rescue_mode");
    const body = "Incorrect password.  Check BMC configuration and try again.";
    const match = { op: "power_off", system_id: barred.machine.systemId };
    fleet.rig.maas.sim.faults.add({ match, kind: "status", code: 500, body, times: 1 });
    const actions = [
      await power.ask(broken.id, "off"),
      await power.ask(barred.id, "off"),
      await power.ask(moved.id, "off"),
    ];
    await fleet.db.update(nodes).set({ generation: 1 }).where(eq(nodes.id, moved.nodeId));
    await power.go();
    const ends = await Promise.all(actions.map(({ id }) => power.read(id)));
    expect(ends.map(({ state, errorCode }) => [state, errorCode])).toEqual([
      ["failed", "machine_not_usable"],
      ["failed", "bmc_login_refused"],
      ["superseded", null],
    ]);
    expect(power.counts(broken.machine)["shutdown"] ?? 0).toBe(0);
  });

  it("that ends while it is off is powered on, so that its host can be cleaned", async () => {
    const { id, nodeId } = await power.instance();
    const off = await power.ask(id, "off");
    await power.becomes(off.id, "done");
    await fleet.db.update(allocations).set({ status: "ending" }).where(eq(allocations.id, id));
    await power.go();
    const newest = (await newestPowerActions(fleet.db, [nodeId])).get(nodeId);
    expect(newest).toMatchObject({ verb: "on", requestedBy: "muster", allocationId: id });
    await power.go();
    expect(await fleet.db.$count(powerActions, eq(powerActions.nodeId, nodeId))).toBe(2);
  });
});

it("an action ends when a tenant gets the node, the instance ends, a restore is unsure, or somebody else claims the repair", async () => {
  const [given, ending, restored, claimed] = [
    await power.instance(),
    await power.instance(),
    await power.instance(),
    await power.instance(),
  ];
  const ids: PowerActionId[] = [];
  for (const one of [given, ending, restored, claimed]) ids.push((await power.ask(one.id, "cycle")).id);
  await fleet.db.update(powerActions).set({ allocationId: null }).where(eq(powerActions.nodeId, given.nodeId));
  await fleet.db.update(allocations).set({ status: "ending" }).where(eq(allocations.id, ending.id));
  await fleet.db.execute(sql`insert into node_health_overrides (node_id, source, reason, set_by)
    values (${restored.nodeId}, 'restore', 'r', 'restore')`);
  await fleet.db.execute(sql`insert into repair_cases (node_id, hostname, mode, state, category, summary, opened_by, claimed_by, claim_until)
    values (${claimed.nodeId}, 'h', 'online', 'claimed', 'Other', 's', 'ann', 'bob', now() + interval '1 hour')`);
  await power.go();
  expect(await Promise.all(ids.map(async (id) => (await power.read(id)).state))).toEqual(Array(4).fill("superseded"));
  for (const { machine } of [given, ending, restored, claimed]) expect(power.counts(machine)["power_off"] ?? 0).toBe(0);
  expect((await newestPowerActions(fleet.db, [ending.nodeId])).get(ending.nodeId)).toMatchObject({ forCleaning: true });
});

it("a host whose tenant nobody knows since a restore is not switched, and no action goes on after the restore", async () => {
  const { nodeId } = await fleet.nodeInService();
  const ofNode = () => fleet.inTx((tx) => requestNodePower(tx, nodeId, { ...asked("off"), knowsTenant: true }));
  const { id } = await ofNode();
  await fleet.inTx((tx) => failRunningPowerActions(tx, "The database was restored"));
  expect(await power.read(id)).toMatchObject({ state: "failed", errorCode: "machine_not_usable" });
  await fleet.db.execute(sql`insert into node_health_overrides (node_id, source, reason, set_by)
    values (${nodeId}, 'restore', 'r', 'restore')`);
  await expect(ofNode()).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining("restored") });
});

it("no power is cut while MAAS has not accepted the shutdown", async () => {
  const { id, machine } = await power.instance();
  const off = await power.ask(id, "off");
  fleet.rig.maas.sim.faults.add({ match: { op: "power_off" }, kind: "status", code: 503, times: 1e6 });
  for (let look = 0; look < 3; look += 1) {
    await power.go();
    const longAgo = sql`now() - interval '10 minutes'`;
    await fleet.db.update(powerActions).set({ shutdownAskedAt: longAgo }).where(eq(powerActions.id, off.id));
  }
  fleet.rig.maas.sim.faults.clear();
  expect(await power.read(off.id)).toMatchObject({ state: "running", offAskedAt: null, shutdownAcceptedAt: null });
  await power.go();
  expect(await power.read(off.id)).toMatchObject({ offAskedAt: null, shutdownAcceptedAt: expect.any(Date) });
  expect(power.counts(machine)["power_off"] ?? 0).toBeLessThanOrEqual(1);
  await power.becomes(off.id, "done");
});

it("a node with a tenant is switched only by who knows of the tenant; MAAS that is away delays an action", async () => {
  const { nodeId, machine } = await power.instance();
  const ofNode = (knowsTenant: boolean) =>
    fleet.inTx((tx) => requestNodePower(tx, nodeId, { ...asked("cycle"), knowsTenant }));
  await expect(ofNode(false)).rejects.toMatchObject({ code: "allocation_exists" });
  const { id } = await ofNode(true);
  await power.go(() => Promise.reject(new Error("a fault of the hub")));
  expect(await power.read(id)).toMatchObject({
    state: "running",
    waitReason: expect.stringContaining("unexpected error"),
  });
  await fleet.db.update(powerActions).set({ deadlineAt: sql`now()` }).where(eq(powerActions.id, id));
  await power.go(() => Promise.reject(new Error("a fault of the hub")));
  expect(await power.read(id)).toMatchObject({ state: "failed", errorCode: "power_state_unknown" });
  expect(power.counts(machine)["power_off"] ?? 0).toBe(0);
});
