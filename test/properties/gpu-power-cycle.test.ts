import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { agentSessions, nodeMaasState, nodes, tasks, workflows } from "../../hub/db/schema/index.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { GPU_RESET_MEANS } from "../../shared/tasks/gpu-scrub.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { setConnected } from "../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { type PowerCycledHost, type SickGpus, SickHost, startSoftResetOnMaas } from "../support/power-cycled-host.ts";
import { nextVerbOf } from "./converge.ts";
import { Driver, plainly } from "./drive.ts";

/** Tests the last means of decision C3, the power cycle of a host whose GPUs the agent cannot reset. */
let rig: OnboardingRig;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 30 });
});
afterAll(() => rig?.close());

const db = () => rig.test.database.db;
const region = () => rig.maas.sim.region;
const countsOf = ({ machine }: PowerCycledHost) => {
  const { power_off: off = 0, power_on: on = 0 } = region().state.counters[machine.systemId] ?? {};
  return { off, on };
};

async function world(gpus: SickGpus, upTo: (typeof GPU_RESET_MEANS)[number] = "power_cycle") {
  boxes += 1;
  const host = await startSoftResetOnMaas(rig, boxes, { gpu_reset_up_to: upTo });
  const before = countsOf(host);
  const sick = new SickHost(rig, host, gpus);
  const driver = new Driver(rig.test, workflowsOf(rig.services), (id, row) => sick.play(id, row));
  const counted = () => ({ off: countsOf(host).off - before.off, on: countsOf(host).on - before.on });
  const scrubs = async () =>
    (await db().select().from(tasks).where(eq(tasks.workflowId, host.id))).filter(
      ({ type }) => type === "node.gpu_scrub",
    );
  return { ...host, sick, driver, counted, scrubs };
}
/** Drives the operation until its machine is off and the hub has seen it. */
const untilOff = ({ driver, id }: Awaited<ReturnType<typeof world>>) =>
  driver.drive(id, ({ state }) => {
    const { gpu_power_cycle: cycle } = state as { gpu_power_cycle?: { off_since: string | null } | null };
    return (cycle?.off_since ?? null) === null ? plainly : null;
  });

describe("a host whose GPUs need a power cycle", () => {
  it.each([
    ["the agent could not reset them", {}],
    ["their driver hangs", { isWedged: true }],
  ])("is powered off and on once if %s, and its GPUs are reset again", async (_why, more) => {
    const one = await world({ wellAfterBoots: 1, ...more });
    const end = await one.driver.drive(one.id);
    expect(end.status, await one.driver.story(one.id)).toBe("completed");
    expect(one.counted()).toEqual({ off: 1, on: 1 });
    expect([one.sick.boots, one.box.power]).toEqual([1, "on"]);
    expect(await one.scrubs()).toHaveLength(2);
    const [node] = await db().select().from(nodes).where(eq(nodes.id, one.nodeId));
    expect(node).toMatchObject({ status: "active", cordonReason: null });
    const events = await listStageEvents(db(), one.id);
    const ends = events
      .filter(({ stage, status }) => stage === "power_cycle_maas_node" && ["succeeded", "skipped"].includes(status))
      .map(({ status }) => status);
    expect(ends.at(-1), "after the second reset no power cycle is needed").toBe("skipped");
  });

  it("needs a person if another power cycle would be needed, who then allows one more", async () => {
    const one = await world({ wellAfterBoots: 2 });
    const failed = await one.driver.drive(one.id);
    expect(failed).toMatchObject({ stage: "scrub_gpu", failureCode: "cleaning_failed" });
    expect(failed.failureMessage).toContain("after a power cycle by Muster, the GPUs need a power cycle of the host");
    expect(one.counted()).toEqual({ off: 1, on: 1 });
    expect(nextVerbOf(failed)).toBe("resume");
    await one.driver.verb(one.id, "resume");
    expect((await one.driver.drive(one.id)).status, await one.driver.story(one.id)).toBe("completed");
    expect(one.counted()).toEqual({ off: 2, on: 2 });
  });

  it.each([
    ["reset", ["reset"]],
    ["reload", ["reset", "reload"]],
  ] as const)("stays on if the profile allows only means up to %s", async (upTo, rungs) => {
    const one = await world({ wellAfterBoots: 1 }, upTo);
    const failed = await one.driver.drive(one.id);
    expect(failed).toMatchObject({ stage: "scrub_gpu", failureCode: "cleaning_failed" });
    expect(failed.failureMessage).toContain("power it off and on in MAAS, then resume");
    expect(one.counted()).toEqual({ off: 0, on: 0 });
    const orders = await one.scrubs();
    expect(orders.length).toBeGreaterThan(0);
    for (const { input } of orders) expect(input).toMatchObject({ rungs });
  });

  it("gets a reset by all means of the agent before the power cycle", async () => {
    const one = await world({ wellAfterBoots: 0 });
    expect((await one.driver.drive(one.id)).status, await one.driver.story(one.id)).toBe("completed");
    expect(one.counted()).toEqual({ off: 0, on: 0 });
    expect((await one.scrubs()).map(({ input }) => (input as { rungs: string[] }).rungs)).toEqual([
      ["reset", "reload"],
    ]);
  });

  it("is not powered off if it has booted again since its GPUs were reset", async () => {
    const one = await world({ wellAfterBoots: 1 });
    await one.driver.drive(one.id, ({ stage }) => (stage === "power_cycle_maas_node" ? null : plainly));
    one.sick.become({ wellAfterBoots: 0 });
    await db().update(agentSessions).set({ bootId: "by hand" }).where(eq(agentSessions.nodeId, one.nodeId));
    expect((await one.driver.drive(one.id)).status, await one.driver.story(one.id)).toBe("completed");
    expect(one.counted()).toEqual({ off: 0, on: 0 });
    expect(await one.scrubs()).toHaveLength(2);
  });

  it("stays off for a minute", async () => {
    const one = await world({ wellAfterBoots: 1 });
    await untilOff(one);
    await db()
      .update(workflows)
      .set({
        state: sql`jsonb_set(${workflows.state}, '{gpu_power_cycle,off_since}', to_jsonb(to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))`,
      })
      .where(eq(workflows.id, one.id));
    const quiet = new Driver(rig.test, workflowsOf(rig.services), async () => undefined);
    for (let look = 0; look < 3; look += 1) await quiet.step(one.id);
    expect(one.counted()).toEqual({ off: 1, on: 0 });
    const [row] = await db().select().from(workflows).where(eq(workflows.id, one.id));
    expect(row?.waitReason).toBe("The machine to stay off for 60 s");
  });
});

describe("a machine that Muster must not power off", () => {
  it.each([
    ["another user's", "machine_owned_by_other", (one: PowerCycledHost) => region().setOwner(one.machine, "somebody")],
    [
      "locked",
      "machine_locked",
      (one: PowerCycledHost) => {
        one.machine.locked = true;
      },
    ],
    ["broken", "unexpected_maas_status", (one: PowerCycledHost) => region().forceStatus(one.machine, STATUS.broken)],
    [
      "released by somebody",
      "unexpected_maas_status",
      (one: PowerCycledHost) => {
        region().setOwner(one.machine, null);
        region().forceStatus(one.machine, STATUS.ready);
      },
    ],
    [
      "no longer bound to the node",
      "node_state_conflict",
      (one: PowerCycledHost) => db().delete(nodeMaasState).where(eq(nodeMaasState.nodeId, one.nodeId)),
    ],
    [
      "of a node that is retired",
      "node_state_conflict",
      (one: PowerCycledHost) => db().update(nodes).set({ status: "retired" }).where(eq(nodes.id, one.nodeId)),
    ],
  ] as const)("stays on if it is %s", async (_name, code, spoil) => {
    const one = await world({ wellAfterBoots: 1 });
    await one.driver.drive(one.id, ({ stage }) => (stage === "power_cycle_maas_node" ? null : plainly));
    await spoil(one);
    const failed = await one.driver.drive(one.id);
    expect(failed).toMatchObject({ stage: "power_cycle_maas_node", failureCode: code });
    expect(one.counted()).toEqual({ off: 0, on: 0 });
  });

  it("is powered on first by a rerun, because without an agent no other stage can begin", async () => {
    const one = await world({ wellAfterBoots: 1 });
    await untilOff(one);
    one.machine.locked = true;
    const failed = await one.driver.drive(one.id);
    expect(failed).toMatchObject({ stage: "power_cycle_maas_node", failureCode: "machine_locked" });
    one.machine.locked = false;
    await one.driver.verb(one.id, "rerun");
    expect((await one.driver.drive(one.id)).status, await one.driver.story(one.id)).toBe("completed");
    expect(one.counted()).toEqual({ off: 1, on: 1 });
  });

  it("stays on if MAAS has the BMC of another node's host at the machine", async () => {
    const one = await world({ wellAfterBoots: 1 });
    const other = await world({ wellAfterBoots: 0 });
    one.machine.powerParameters["power_address"] = other.box.bmcAddress;
    const failed = await one.driver.drive(one.id);
    expect(failed).toMatchObject({ stage: "power_cycle_maas_node", failureCode: "node_state_conflict" });
    expect(failed.failureMessage).toContain(other.hostname);
    expect([one.counted(), other.counted()]).toEqual([
      { off: 0, on: 0 },
      { off: 0, on: 0 },
    ]);
  });
});

describe("a power cycle that does not end", () => {
  const late = (id: PowerCycledHost["id"]) =>
    db().update(workflows).set({ stageDeadline: sql`now() - interval '1 second'` }).where(eq(workflows.id, id));

  it("fails if the agent does not connect in time, and continues by resume without another power cycle", async () => {
    const one = await world({ wellAfterBoots: 1, staysDown: true });
    await one.driver.drive(one.id, ({ waitReason }) =>
      waitReason === "The agent to connect after the power cycle" ? null : plainly,
    );
    await late(one.id);
    const failed = await one.driver.drive(one.id);
    expect(failed).toMatchObject({ stage: "power_cycle_maas_node", failureCode: "agent_unreachable" });
    one.sick.become({ wellAfterBoots: 1 });
    await one.driver.verb(one.id, nextVerbOf(failed));
    expect((await one.driver.drive(one.id)).status, await one.driver.story(one.id)).toBe("completed");
    expect(one.counted()).toEqual({ off: 1, on: 1 });
  });

  it("fails if the machine does not go off, and asks MAAS again after a person has resumed", async () => {
    const one = await world({ wellAfterBoots: 1 });
    one.box.bmcSeconds = 1e9;
    await one.driver.drive(one.id, ({ waitReason }) =>
      waitReason === "MAAS to power the machine off" ? null : plainly,
    );
    await one.driver.step(one.id);
    await late(one.id);
    const failed = await one.driver.drive(one.id);
    expect(failed).toMatchObject({ stage: "power_cycle_maas_node", failureCode: "power_action_failed" });
    expect(failed.failureMessage).toContain("is still on");
    delete one.box.bmcSeconds;
    await one.driver.verb(one.id, nextVerbOf(failed));
    expect((await one.driver.drive(one.id)).status, await one.driver.story(one.id)).toBe("completed");
    expect(one.counted()).toEqual({ off: 2, on: 1 });
  });
});

describe("a cancel", () => {
  const cancelled = async (one: Awaited<ReturnType<typeof world>>) => {
    await one.driver.verb(one.id, "cancel");
    return one.driver.drive(one.id);
  };
  const isUnclean = async (one: PowerCycledHost) =>
    (await db().select().from(nodes).where(eq(nodes.id, one.nodeId)))[0]?.status;

  it("while the machine is off powers it on again", async () => {
    const one = await world({ wellAfterBoots: 1 });
    await untilOff(one);
    expect(one.box.power).toBe("off");
    expect((await cancelled(one)).status).toBe("cancelled");
    region().settle(one.machine);
    expect(one.box.power).toBe("on");
    expect(one.counted()).toEqual({ off: 1, on: 1 });
    expect(await isUnclean(one)).toBe("quarantined");
  });

  it("before the power cycle sends no power command", async () => {
    const one = await world({ wellAfterBoots: 1 });
    await one.driver.drive(one.id, ({ stage }) => (stage === "power_cycle_maas_node" ? null : plainly));
    expect((await cancelled(one)).status).toBe("cancelled");
    expect(one.counted()).toEqual({ off: 0, on: 0 });
  });

  it("names a machine that is off and that Muster must not power on", async () => {
    const one = await world({ wellAfterBoots: 1 });
    await untilOff(one);
    one.machine.locked = true;
    const end = await cancelled(one);
    expect(end.status).toBe("cancelled");
    expect(end.nextAction).toContain("power it on if its host is still in use");
    expect(one.counted()).toEqual({ off: 1, on: 0 });
    await setConnected(rig, one.nodeId, true);
  });
});
