/** The power of instances' machines at a simulated MAAS: each verb to its end, what refuses it, and that a host that is off by request is no fault. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readAllocation } from "../../../hub/db/queries/allocations.ts";
import { failRunningPowerActions, newestPowerActions, readPowerAction } from "../../../hub/db/queries/power-actions.ts";
import { agentSessions, allocations, nodes, type PowerAction, powerActions } from "../../../hub/db/schema/index.ts";
import { isOpen, toInstances } from "../../../hub/http/routes/instance-rows.ts";
import { sweepOffline } from "../../../hub/node/offline-sweep.ts";
import { requestInstancePower, requestNodePower } from "../../../hub/power/request-power.ts";
import { beginSteps } from "../../../hub/power/sweep.ts";
import { startDecommission } from "../../../hub/workflows/decommission/start-decommission.ts";
import { AllocationId, type NodeId, type PowerActionId } from "../../../shared/ids.ts";
import type { PowerVerb } from "../../../shared/power.ts";
import { SSH_KEY } from "../../support/allocatable-node.ts";
import { FleetRig } from "../../support/fleet-rig.ts";
import { quietLog } from "../../support/log.ts";
import { setConnected } from "../../support/node-in-service.ts";
import { until } from "../../support/until.ts";

const ANN = { name: "ann", tenant: null };
let fleet: FleetRig;
beforeAll(async () => {
  fleet = await FleetRig.start(20);
});
afterAll(() => fleet?.close());

async function instance() {
  const { nodeId, hostname, machine } = await fleet.nodeInService();
  const box = fleet.rig.maas.sim.region.hardwareOf(machine);
  if (box === undefined) throw new Error("the machine has no hardware");
  box.power = "on";
  const id = AllocationId.parse(randomUUID());
  const account = { tenant: "acme", loginUser: "alice", sshKeys: [SSH_KEY], grantsRoot: false, labels: {} };
  await fleet.db.insert(allocations).values({
    ...{ id, nodeId, siteId: fleet.siteId, hostname, generation: 0, createdBy: "ann", status: "active", ...account },
  });
  return { id, nodeId, machine, box };
}
const asked = (verb: PowerVerb, more: object = {}) => ({ verb, immediate: false, reason: "a test", by: ANN, ...more });
const ask = (id: AllocationId, verb: PowerVerb, more: object = {}) =>
  fleet.inTx((tx) => requestInstancePower(tx, id, asked(verb, more)));
const refusal = (id: AllocationId, verb: PowerVerb = "off") =>
  ask(id, verb).then(
    () => "accepted",
    (error: { code: string }) => error.code,
  );

/** Lets all steps that are due end, as if the time of each wait were over. */
async function go(maas = fleet.rig.services.maas): Promise<void> {
  await fleet.db.update(powerActions).set({ wakeAt: sql`now()`, claimedUntil: null });
  await Promise.all(await beginSteps({ db: fleet.db, inTx: fleet.inTx, log: quietLog, maas }));
}
const read = async (id: PowerActionId): Promise<PowerAction> => {
  const row = await readPowerAction(fleet.db, id);
  if (row === null) throw new Error("the action is gone");
  return row;
};
const becomes = (id: PowerActionId, state: string) =>
  until(`the action to be ${state}`, async () => {
    await go();
    const row = await read(id);
    return row.state === state ? row : undefined;
  });
const waitsFor = (id: PowerActionId, reason: string) =>
  until(`the action to wait for ${reason}`, async () => {
    await go();
    return (await read(id)).waitReason === reason ? true : undefined;
  });
const boot = async (nodeId: NodeId, bootId: string) => {
  await setConnected(fleet.rig, nodeId, true);
  const now = sql`clock_timestamp()`;
  await fleet.db
    .update(agentSessions)
    .set({ bootId, connectedAt: now, lastSeenAt: now })
    .where(eq(agentSessions.nodeId, nodeId));
  await fleet.db.update(nodes).set({ lastAgentContactAt: now }).where(eq(nodes.id, nodeId));
};
const shown = async (id: AllocationId) => {
  const row = await readAllocation(fleet.db, id);
  if (row === null || !isOpen(row)) throw new Error("no open allocation");
  const [one] = await toInstances(fleet.db, [row]);
  return one;
};
const counts = (machine: { systemId: string }) => fleet.rig.maas.sim.region.state.counters[machine.systemId];

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
    const { id, nodeId, machine } = await instance();
    const off = await ask(id, "off");
    await go();
    expect(await shown(id)).toMatchObject({ status: "Stopped", power_action: { verb: "off", state: "running" } });
    await becomes(off.id, "done");
    expect(counts(machine)).toMatchObject({ shutdown: 1, power_off: 0 });
    expect(await fallSilent(nodeId), "the breaker counts no silence by request").toEqual([]);
    expect((await fleet.node(nodeId)).status).toBe("offline");
    expect(await shown(id)).toMatchObject({ status: "Stopped", next_action: expect.stringContaining("power-on") });

    const on = await ask(id, "on");
    await waitsFor(on.id, "The agent of the host to connect");
    expect((await shown(id))?.status).toBe("Rebooting");
    await boot(nodeId, "boot-2");
    await becomes(on.id, "done");
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
    const { id, nodeId, machine, box } = await instance();
    box.hangs = true;
    const reboot = await ask(id, "reboot");
    await waitsFor(reboot.id, "The host's system to shut down");
    await fleet.db.update(powerActions).set({ shutdownAcceptedAt: sql`now() - interval '5 minutes'` });
    await waitsFor(reboot.id, "The agent of the host to connect");
    expect(counts(machine)).toMatchObject({ shutdown: 1, power_off: 1, power_on: 1 });
    await boot(nodeId, "boot");
    await waitsFor(reboot.id, "The agent of the host to connect");
    await boot(nodeId, "boot-2");
    expect(await becomes(reboot.id, "done")).toMatchObject({ errorCode: null, bootId: "boot" });
  });

  it("is switched off for a minute by a cycle, at once", async () => {
    const { id, nodeId, machine } = await instance();
    const cycle = await ask(id, "cycle");
    await waitsFor(cycle.id, "The machine to stay off for 60 s");
    await fleet.db.update(powerActions).set({ offSeenAt: sql`now() - interval '1 minute'` });
    await waitsFor(cycle.id, "The agent of the host to connect");
    await boot(nodeId, "boot-2");
    await becomes(cycle.id, "done");
    expect(counts(machine)).toMatchObject({ shutdown: 0, power_off: 1, power_on: 1 });
  });

  it("has one action at a time, none while an operation or a repair has its machine, and six within an hour", async () => {
    const { id, nodeId } = await instance();
    const first = await ask(id, "off");
    expect(await refusal(id, "on")).toBe("operation_exists");
    await fleet.db.delete(powerActions).where(eq(powerActions.id, first.id));
    const claimed = sql`insert into repair_cases (node_id, hostname, mode, state, category, summary, opened_by, claimed_by, claim_until)
      values (${nodeId}, 'h', 'online', 'claimed', 'Other', 's', 'ann', 'bob', now() + interval '1 hour')`;
    await fleet.db.execute(claimed);
    expect(await refusal(id)).toBe("conflict");
    const bob = { by: { name: "bob", tenant: null } };
    const { id: bobs } = await ask(id, "off", bob);
    await fleet.db.execute(sql`delete from repair_cases where node_id = ${nodeId}`);
    const ended = { state: "superseded", finishedAt: sql`now()` } as const;
    await fleet.db.update(powerActions).set(ended).where(eq(powerActions.id, bobs));
    for (let n = 0; n < 5; n += 1) {
      const { id: action } = await ask(id, "on");
      await fleet.db.update(powerActions).set(ended).where(eq(powerActions.id, action));
    }
    expect(await refusal(id)).toBe("rate_limited");
    await fleet.db.update(powerActions).set({ requestedAt: sql`now() - interval '2 hours'` });
    await fleet.db.update(allocations).set({ status: "ending" }).where(eq(allocations.id, id));
    expect(await refusal(id)).toBe("conflict");
    const request = { mode: "soft_reset", reason: "r", agent_wait_seconds: 0, storage_cleanup: "none" } as const;
    await fleet.inTx((tx) => startDecommission(tx, nodeId, request, "ann"));
    await fleet.db.update(allocations).set({ status: "active" }).where(eq(allocations.id, id));
    expect(await refusal(id)).toBe("operation_exists");
  });

  it("whose machine somebody works on, or whose BMC refuses the login, is left alone", async () => {
    const [broken, barred, moved] = [await instance(), await instance(), await instance()];
    fleet.status(broken.machine, "rescue_mode");
    const body = "Incorrect password.  Check BMC configuration and try again.";
    const match = { op: "power_off", system_id: barred.machine.systemId };
    fleet.rig.maas.sim.faults.add({ match, kind: "status", code: 500, body, times: 1 });
    const actions = [await ask(broken.id, "off"), await ask(barred.id, "off"), await ask(moved.id, "off")];
    await fleet.db.update(nodes).set({ generation: 1 }).where(eq(nodes.id, moved.nodeId));
    await go();
    const ends = await Promise.all(actions.map(({ id }) => read(id)));
    expect(ends.map(({ state, errorCode }) => [state, errorCode])).toEqual([
      ["failed", "machine_not_usable"],
      ["failed", "bmc_login_refused"],
      ["superseded", null],
    ]);
    expect(counts(broken.machine)?.shutdown ?? 0).toBe(0);
  });

  it("that ends while it is off is powered on, so that its host can be cleaned", async () => {
    const { id, nodeId } = await instance();
    const off = await ask(id, "off");
    await becomes(off.id, "done");
    await fleet.db.update(allocations).set({ status: "ending" }).where(eq(allocations.id, id));
    await go();
    const newest = (await newestPowerActions(fleet.db, [nodeId])).get(nodeId);
    expect(newest).toMatchObject({ verb: "on", requestedBy: "muster", allocationId: id });
    await go();
    expect(await fleet.db.$count(powerActions, eq(powerActions.nodeId, nodeId))).toBe(2);
  });
});

it("an action ends when a tenant gets the node, the instance ends, a restore is unsure, or somebody else claims the repair", async () => {
  const [given, ending, restored, claimed] = [await instance(), await instance(), await instance(), await instance()];
  const ids: Parameters<typeof read>[0][] = [];
  for (const one of [given, ending, restored, claimed]) ids.push((await ask(one.id, "cycle")).id);
  await fleet.db.update(powerActions).set({ allocationId: null }).where(eq(powerActions.nodeId, given.nodeId));
  await fleet.db.update(allocations).set({ status: "ending" }).where(eq(allocations.id, ending.id));
  await fleet.db.execute(sql`insert into node_health_overrides (node_id, source, reason, set_by)
    values (${restored.nodeId}, 'restore', 'r', 'restore')`);
  await fleet.db.execute(sql`insert into repair_cases (node_id, hostname, mode, state, category, summary, opened_by, claimed_by, claim_until)
    values (${claimed.nodeId}, 'h', 'online', 'claimed', 'Other', 's', 'ann', 'bob', now() + interval '1 hour')`);
  await go();
  expect(await Promise.all(ids.map(async (id) => (await read(id)).state))).toEqual(Array(4).fill("superseded"));
  for (const { machine } of [given, ending, restored, claimed]) expect(counts(machine)?.power_off ?? 0).toBe(0);
  expect((await newestPowerActions(fleet.db, [ending.nodeId])).get(ending.nodeId)).toMatchObject({ forCleaning: true });
});

it("a host whose tenant nobody knows since a restore is not switched, and no action goes on after the restore", async () => {
  const { nodeId } = await fleet.nodeInService();
  const ofNode = () => fleet.inTx((tx) => requestNodePower(tx, nodeId, { ...asked("off"), knowsTenant: true }));
  const { id } = await ofNode();
  await fleet.inTx((tx) => failRunningPowerActions(tx, "The database was restored"));
  expect(await read(id)).toMatchObject({ state: "failed", errorCode: "machine_not_usable" });
  await fleet.db.execute(sql`insert into node_health_overrides (node_id, source, reason, set_by)
    values (${nodeId}, 'restore', 'r', 'restore')`);
  await expect(ofNode()).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining("restored") });
});

it("no power is cut while MAAS has not accepted the shutdown", async () => {
  const { id, machine } = await instance();
  const off = await ask(id, "off");
  fleet.rig.maas.sim.faults.add({ match: { op: "power_off" }, kind: "status", code: 503, times: 1e6 });
  for (let look = 0; look < 3; look += 1) {
    await go();
    const longAgo = sql`now() - interval '10 minutes'`;
    await fleet.db.update(powerActions).set({ shutdownAskedAt: longAgo }).where(eq(powerActions.id, off.id));
  }
  fleet.rig.maas.sim.faults.clear();
  expect(await read(off.id)).toMatchObject({ state: "running", offAskedAt: null, shutdownAcceptedAt: null });
  await go();
  expect(await read(off.id)).toMatchObject({ offAskedAt: null, shutdownAcceptedAt: expect.any(Date) });
  expect(counts(machine)?.power_off ?? 0).toBeLessThanOrEqual(1);
  await becomes(off.id, "done");
});

it("a node with a tenant is switched only by who knows of the tenant; MAAS that is away delays an action", async () => {
  const { nodeId, machine } = await instance();
  const ofNode = (knowsTenant: boolean) =>
    fleet.inTx((tx) => requestNodePower(tx, nodeId, { ...asked("cycle"), knowsTenant }));
  await expect(ofNode(false)).rejects.toMatchObject({ code: "allocation_exists" });
  const { id } = await ofNode(true);
  await go(() => Promise.reject(new Error("a fault of the hub")));
  expect(await read(id)).toMatchObject({ state: "running", waitReason: expect.stringContaining("unexpected error") });
  await fleet.db.update(powerActions).set({ deadlineAt: sql`now()` }).where(eq(powerActions.id, id));
  await go(() => Promise.reject(new Error("a fault of the hub")));
  expect(await read(id)).toMatchObject({ state: "failed", errorCode: "power_state_unknown" });
  expect(counts(machine)?.power_off ?? 0).toBe(0);
});
