import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { readObservedMachine } from "../../../hub/db/queries/maas-machines.ts";
import { holdWatch } from "../../../hub/db/queries/maas-site-watches.ts";
import { maasSiteWatches, nodeMaasState } from "../../../hub/db/schema/index.ts";
import { MaasError, type MaasPort } from "../../../hub/maas/port.ts";
import { loadConfig } from "../../../hub/startup/config.ts";
import { emptyMemory, pollSite } from "../../../hub/watcher/poll.ts";
import { ROLL_CALL_MS } from "../../../hub/watcher/roll-call.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { powerOn } from "../../fakes/maas/engine/marks.ts";
import type { Machine } from "../../fakes/maas/state/model.ts";
import { FleetRig } from "../../support/fleet-rig.ts";
import { event, machine, Region } from "../../support/listed-region.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const HOUR = 3_600_000;

/**
 * MAAS sends no event when a machine's power has changed or when a machine is gone. Sweeps run only at the start of these tests, so the watcher must
 * find changed power and missing machines without a sweep.
 */
let fleet: FleetRig;
let maas: MaasPort;
beforeAll(async () => {
  fleet = await FleetRig.start(12);
  fleet.watch({ rollCallMs: 300 });
  maas = await fleet.rig.services.maas(fleet.siteId);
});
afterAll(() => fleet?.close());

const region = () => fleet.rig.maas.sim.region;
/**
 * Creates an active node and runs one sweep of the site's machines. The next sweep of the site is due after an hour, so no sweep finds the changes of
 * a test.
 */
const known = async () => {
  const made = await fleet.nodeInService();
  const box = region().hardwareOf(made.machine);
  if (box === undefined) throw new Error("the machine has no box");
  // The simulated BMC is so slow that a power action ends only when the test ends it.
  box.bmcSeconds = 1e12;
  await fleet.sweep();
  await until("the node to be judged by that sweep", async () => {
    const node = await fleet.node(made.nodeId);
    return !node.driftDetected && node.lastMaasPowerState === "on" ? true : undefined;
  });
  return made;
};
/** Waits until the watcher has stored a poll that read the region's newest event and the event's machine. */
const polled = (): Promise<true> => {
  const newest = region().state.events.at(-1)?.id ?? 0;
  return until("a poll after the event", async () =>
    ((await watchOf())?.eventCursor ?? 0) >= newest ? true : undefined,
  );
};
const watchOf = async () =>
  (await fleet.db.select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, fleet.siteId)))[0];
const sweptAt = async () => (await watchOf())?.lastSweepAt;
/** Makes the simulated BMC finish its power action. MAAS writes no event about the end of a power action. */
const done = (machine: Machine): void => {
  const before = region().state.events.length;
  region().settle(machine);
  expect(region().state.events).toHaveLength(before);
};
const healed = (nodeId: Parameters<FleetRig["node"]>[0]) =>
  until("the drift to be over", async () => {
    const node = await fleet.node(nodeId);
    return node.driftDetected ? undefined : node;
  });

describe("power, whose end MAAS announces by no event", () => {
  it("is seen as off, and later on, even if the BMC acts long after the event was read", async () => {
    const { nodeId, machine } = await known();
    await maas.powerOff(machine.systemId);
    await polled();
    expect(await fleet.node(nodeId)).toMatchObject({ driftDetected: false, lastMaasPowerState: "on" });
    done(machine);
    await fleet.drifted(nodeId, "powered_off");
    // The watcher reads the machine rarely, because the machine's power has been uncertain for long. The watcher soon reads a machine with uncertain
    // power only after a new event of the machine.
    const person = region().state.users[0];
    if (person === undefined) throw new Error("the region has no user");
    await powerOn(region(), machine, person, null, null);
    await polled();
    expect((await fleet.node(nodeId)).driftDetected).toBe(true);
    done(machine);
    expect(await healed(nodeId)).toMatchObject({ lastMaasPowerState: "on" });
  });

  it("is seen as off when the plug was pulled and the agent is gone", async () => {
    const { nodeId, machine } = await known();
    await fleet.goneFor(nodeId, "1 minute");
    machine.powerState = "off";
    await fleet.drifted(nodeId, "powered_off");
  });

  it("does not count as off if the agent has reported since, whatever MAAS says", async () => {
    const { nodeId, machine } = await known();
    fleet.change(machine, (one) => {
      one.powerState = "off";
    });
    await fleet.drifted(nodeId, "powered_off");
    await fleet.setConnected(nodeId, true);
    expect(await healed(nodeId)).toMatchObject({ status: "active", lastMaasPowerState: "off" });
  });
});

it("a node that is bound during a poll gets its machine's state with the next poll", async () => {
  const { nodeId } = await known();
  const unseen = { lastMaasStatus: null, lastMaasPowerState: null, lastMaasIps: null };
  await fleet.db.update(nodeMaasState).set(unseen).where(eq(nodeMaasState.nodeId, nodeId));
  await fleet.sweep();
  await until("the node to know its machine", async () =>
    (await fleet.node(nodeId)).lastMaasPowerState === "on" ? true : undefined,
  );
});

describe("the requests of a poll", () => {
  const region = new Region();
  const siteId = randomUUID() as SiteId;
  const memory = emptyMemory();
  const poll = async (rollCallMs = HOUR): Promise<string[]> => {
    const { db, inTx } = fleet;
    const watch = await holdWatch(db, siteId, fleet.rig.siteId, 60);
    if (watch === null) throw new Error("somebody else watches the site");
    region.asked.length = 0;
    await pollSite({ db, inTx, log: quietLog, sweepIntervalMs: HOUR, rollCallMs }, siteId, watch, region.port, memory);
    return [...region.asked];
  };
  const absent = async (systemId: string) => (await readObservedMachine(fleet.db, siteId, systemId))?.absent;

  it("are one for all machines whose power is about to change", async () => {
    region.machines = Array.from({ length: 300 }, (_, n) => machine(`m${n}`, 6));
    region.feed = [event(1, "m0")];
    await poll();
    await poll();
    region.feed.push(
      ...region.machines.map(({ systemId }, n) => ({ ...event(n + 2, systemId), type: "User powering down node" })),
    );
    expect(await poll()).toEqual(["events", "some 300"]);
    memory.waitedNotBefore = 0;
    expect(await poll()).toEqual(["events", "some 300"]);
    region.machines = region.machines.map((one) => ({ ...one, powerState: "off" }));
    await until("they are read as off", async () => {
      memory.waitedNotBefore = 0;
      return (await poll()).length > 1 ? true : undefined;
    });
    memory.waitedNotBefore = 0;
    expect(await poll()).toEqual(["events"]);
  });

  it("include the ids of all machines now and then, and confirm a machine that is gone", async () => {
    expect(await poll(0)).toEqual(["events", "ids"]);
    expect(await poll()).toEqual(["events"]);
    region.machines = region.machines.slice(1);
    expect(await poll(0)).toEqual(["events", "ids", "whoami", "one m0", "whoami"]);
    expect(await absent("m0")).toBe(true);
    expect(await poll(0)).toEqual(["events", "ids"]);
  });

  it("keep the result of the id list when MAAS fails before it is confirmed", async () => {
    const gone = region.machines[0]?.systemId ?? "";
    region.machines = region.machines.slice(1);
    region.onReadOne = () => {
      throw new MaasError({ code: "timeout", operation: "test", message: "too slow" });
    };
    await expect(poll(0)).rejects.toThrow("too slow");
    region.onReadOne = () => undefined;
    expect(await poll()).toEqual(["events", "whoami", `one ${gone}`, "whoami"]);
    expect(await absent(gone)).toBe(true);
  });

  it("do not trust a shorter id list if the token has lost its rights", async () => {
    const [first, ...others] = region.machines;
    region.machines = others;
    region.isSuperuser = false;
    expect(await poll(0)).toEqual(["events", "ids", "whoami"]);
    region.isSuperuser = true;
    region.machines = first === undefined ? others : [first, ...others];
    expect(await absent(first?.systemId ?? "")).toBe(false);
  });

  it("continue when MAAS refuses the id list", async () => {
    const { systemIds } = region.port;
    region.port.systemIds = () =>
      Promise.reject(new MaasError({ code: "forbidden", operation: "test", message: "no" }));
    expect(await poll(0)).toEqual(["events"]);
    region.port.systemIds = systemIds;
    expect(await poll(0)).toEqual(["events", "ids"]);
  });
});

describe("a machine that is deleted in MAAS together with its events", () => {
  const remove = (machine: Machine): void => {
    const { state } = region();
    state.machines = state.machines.filter((one) => one !== machine);
    state.events = state.events.filter((event) => event.systemId !== machine.systemId);
  };
  /**
   * Adds events of a machine that stays in MAAS, because MAAS deletes the events of a deleted machine. Without newer events, the deletion of a
   * machine would lower the region's newest event id, and the watcher would sweep all machines.
   */
  const somethingElse = async (): Promise<void> => {
    const other = await known();
    for (let n = 0; n < 60; n += 1) fleet.change(other.machine, () => undefined);
    await polled();
  };
  it("is found by the list of ids without a sweep, even if its agent is connected", async () => {
    const { nodeId, machine } = await known();
    await somethingElse();
    const before = await sweptAt();
    remove(machine);
    expect(await fleet.becomes(nodeId, "quarantined")).toMatchObject({ driftDetails: { rule: "machine_deleted" } });
    expect(await sweptAt()).toEqual(before);
  });

  it("is found within five minutes by default: the id list plus three polls (lifecycle 6.3)", () => {
    expect(ROLL_CALL_MS + 3 * loadConfig({}).watchIntervalMs).toBeLessThanOrEqual(300_000);
  });
});
