import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadConfig } from "../../../hub/config.ts";
import { eq } from "../../../hub/db/orm.ts";
import { readObservedMachine } from "../../../hub/db/queries/maas-machines.ts";
import { holdWatch } from "../../../hub/db/queries/maas-site-watches.ts";
import { maasSiteWatches, nodeMaasState } from "../../../hub/db/schema/index.ts";
import { MaasError, type MaasPort } from "../../../hub/maas/port.ts";
import { emptyMemory, lookAtSite } from "../../../hub/watcher/look.ts";
import { ROLL_CALL_MS } from "../../../hub/watcher/roll-call.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { powerOn } from "../../fakes/maas/engine/marks.ts";
import type { Machine } from "../../fakes/maas/state/model.ts";
import { FleetRig } from "../../support/fleet-rig.ts";
import { event, machine, Region } from "../../support/listed-region.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const HOUR = 3_600_000;

/** What MAAS tells no event of: that power has changed, and that a machine is gone. Nothing is swept here but at the start. */
let fleet: FleetRig;
let maas: MaasPort;
beforeAll(async () => {
  fleet = await FleetRig.start(12);
  fleet.watch({ rollCallMs: 300 });
  maas = await fleet.rig.services.maas(fleet.siteId);
});
afterAll(() => fleet?.close());

const region = () => fleet.rig.maas.sim.region;
/** Sweeps alone would find it after an hour; none is asked for after this. */
const known = async () => {
  const made = await fleet.nodeInService();
  const box = region().hardwareOf(made.machine);
  if (box === undefined) throw new Error("the machine has no box");
  // So slow that it ends when the test says so.
  box.bmcSeconds = 1e12;
  await fleet.sweep();
  await until("the node to be judged by that sweep", async () => {
    const node = await fleet.node(made.nodeId);
    return !node.driftDetected && node.lastMaasPowerState === "on" ? true : undefined;
  });
  return made;
};
/** Until a look that has read the newest event, and with it the machine, is kept. */
const looked = (): Promise<true> => {
  const newest = region().state.events.at(-1)?.id ?? 0;
  return until("a look after the event", async () =>
    ((await watchOf())?.eventCursor ?? 0) >= newest ? true : undefined,
  );
};
const watchOf = async () =>
  (await fleet.db.select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, fleet.siteId)))[0];
const sweptAt = async () => (await watchOf())?.lastSweepAt;
/** The BMC has done it, and nobody says so. */
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

describe("power, of which MAAS tells that it is about to change and never that it has", () => {
  it("is seen to be off, and on again, though the BMC took its time after the event was read", async () => {
    const { nodeId, machine } = await known();
    await maas.powerOff(machine.systemId);
    await looked();
    expect(await fleet.node(nodeId)).toMatchObject({ driftDetected: false, lastMaasPowerState: "on" });
    done(machine);
    await fleet.drifted(nodeId, "powered_off");
    // Long enough in doubt that nothing but the next event makes it read soon.
    const person = region().state.users[0];
    if (person === undefined) throw new Error("the region has no user");
    await powerOn(region(), machine, person, null, null);
    await looked();
    expect((await fleet.node(nodeId)).driftDetected).toBe(true);
    done(machine);
    expect(await healed(nodeId)).toMatchObject({ lastMaasPowerState: "on" });
  });

  it("is seen to be off where somebody pulled the plug and the agent is gone", async () => {
    const { nodeId, machine } = await known();
    await fleet.goneFor(nodeId, "1 minute");
    machine.powerState = "off";
    await fleet.drifted(nodeId, "powered_off");
  });

  it("is not off where the agent was heard of since, whatever MAAS goes on saying", async () => {
    const { nodeId, machine } = await known();
    fleet.change(machine, (one) => {
      one.powerState = "off";
    });
    await fleet.drifted(nodeId, "powered_off");
    await fleet.setConnected(nodeId, true);
    expect(await healed(nodeId)).toMatchObject({ status: "active", lastMaasPowerState: "off" });
  });
});

it("what was bound to its machine beside a look, so that neither saw the other, is told of it by the next one", async () => {
  const { nodeId } = await known();
  const unseen = { lastMaasStatus: null, lastMaasPowerState: null, lastMaasIps: null };
  await fleet.db.update(nodeMaasState).set(unseen).where(eq(nodeMaasState.nodeId, nodeId));
  await fleet.sweep();
  await until("the node to know its machine", async () =>
    (await fleet.node(nodeId)).lastMaasPowerState === "on" ? true : undefined,
  );
});

describe("what a look costs", () => {
  const region = new Region();
  const siteId = randomUUID() as SiteId;
  const memory = emptyMemory();
  const look = async (rollCallMs = HOUR): Promise<string[]> => {
    const { db, inTx } = fleet;
    const watch = await holdWatch(db, siteId, fleet.rig.siteId, 60);
    if (watch === null) throw new Error("somebody else watches the site");
    region.asked.length = 0;
    await lookAtSite(
      { db, inTx, log: quietLog, sweepIntervalMs: HOUR, rollCallMs },
      siteId,
      watch,
      region.port,
      memory,
    );
    return [...region.asked];
  };
  const absent = async (systemId: string) => (await readObservedMachine(fleet.db, siteId, systemId))?.absent;

  it("is one request for all machines that somebody is about to switch", async () => {
    region.machines = Array.from({ length: 300 }, (_, n) => machine(`m${n}`, 6));
    region.feed = [event(1, "m0")];
    await look();
    await look();
    region.feed.push(
      ...region.machines.map(({ systemId }, n) => ({ ...event(n + 2, systemId), type: "User powering down node" })),
    );
    expect(await look()).toEqual(["events", "some 300"]);
    memory.waitedNotBefore = 0;
    expect(await look()).toEqual(["events", "some 300"]);
    region.machines = region.machines.map((one) => ({ ...one, powerState: "off" }));
    await until("they are read as off", async () => {
      memory.waitedNotBefore = 0;
      return (await look()).length > 1 ? true : undefined;
    });
    memory.waitedNotBefore = 0;
    expect(await look()).toEqual(["events"]);
  });

  it("is one request more for the ids of all machines, now and then, and two for one that is gone", async () => {
    expect(await look(0)).toEqual(["events", "ids"]);
    expect(await look()).toEqual(["events"]);
    region.machines = region.machines.slice(1);
    expect(await look(0)).toEqual(["events", "ids", "whoami", "one m0", "whoami"]);
    expect(await absent("m0")).toBe(true);
    expect(await look(0)).toEqual(["events", "ids"]);
  });

  it("keeps what the list of ids has told where MAAS fails before that is confirmed", async () => {
    const gone = region.machines[0]?.systemId ?? "";
    region.machines = region.machines.slice(1);
    region.onReadOne = () => {
      throw new MaasError({ code: "timeout", operation: "test", message: "too slow" });
    };
    await expect(look(0)).rejects.toThrow("too slow");
    region.onReadOne = () => undefined;
    expect(await look()).toEqual(["events", "whoami", `one ${gone}`, "whoami"]);
    expect(await absent(gone)).toBe(true);
  });

  it("believes no list of ids that says less because our token lost its rights", async () => {
    const [first, ...others] = region.machines;
    region.machines = others;
    region.isSuperuser = false;
    expect(await look(0)).toEqual(["events", "ids", "whoami"]);
    region.isSuperuser = true;
    region.machines = first === undefined ? others : [first, ...others];
    expect(await absent(first?.systemId ?? "")).toBe(false);
  });

  it("goes on where MAAS refuses the list of ids", async () => {
    const { systemIds } = region.port;
    region.port.systemIds = () =>
      Promise.reject(new MaasError({ code: "forbidden", operation: "test", message: "no" }));
    expect(await look(0)).toEqual(["events"]);
    region.port.systemIds = systemIds;
    expect(await look(0)).toEqual(["events", "ids"]);
  });
});

describe("a machine that is deleted in MAAS, and takes its events with it", () => {
  const remove = (machine: Machine): void => {
    const { state } = region();
    state.machines = state.machines.filter((one) => one !== machine);
    state.events = state.events.filter((event) => event.systemId !== machine.systemId);
  };
  /** Its own events are not the last ones: a feed that seems to have gone back would bring on a sweep. */
  const somethingElse = async (): Promise<void> => {
    const other = await known();
    for (let n = 0; n < 60; n += 1) fleet.change(other.machine, () => undefined);
    await looked();
  };
  it("is found by a list of ids, without a list of machines, though its agent is well", async () => {
    const { nodeId, machine } = await known();
    await somethingElse();
    const before = await sweptAt();
    remove(machine);
    expect(await fleet.becomes(nodeId, "quarantined")).toMatchObject({ driftDetails: { rule: "machine_deleted" } });
    expect(await sweptAt()).toEqual(before);
  });

  it("is found within five minutes by the defaults: the call, a look that hears its end, one that reads the machine, and one to spare (lifecycle 6.3)", () => {
    expect(ROLL_CALL_MS + 3 * loadConfig({}).watchIntervalMs).toBeLessThanOrEqual(300_000);
  });
});
