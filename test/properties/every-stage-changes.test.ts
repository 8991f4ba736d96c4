import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FailureClass } from "../../shared/failures.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { expectConverged, expectExplained, OPERATOR, runWithTroubleAtEach, Tally, type Trouble } from "./converge.ts";
import { plainly } from "./drive.ts";
import { FAULT_HALVES } from "./halves.ts";
import {
  countedOf,
  FAULT_SCENARIOS,
  machineOf,
  OF_THE_AGENT_ALONE,
  type Outside,
  type Scenario,
  type Stagecraft,
  setStage,
} from "./scenarios.ts";

/** For each stage of each workflow, the tests make each lasting change that a person or an outage can make during the stage. */
let craft: Stagecraft;
const tally = new Tally();
beforeAll(async () => {
  craft = await setStage(800);
});
afterAll(async () => {
  tally.print("changes");
  await craft?.close();
});

/**
 * The failure classes with which a workflow may end after somebody changed its machine in MAAS. The failure class `deploy_cloud_init_failure` is
 * allowed, because the deploy may already have failed when a stage finds the change in MAAS.
 */
const AMBIGUOUS = ["state_ambiguity", "deploy_cloud_init_failure"] as const satisfies readonly FailureClass[];

/**
 * Makes a fault that consists in a change of the workflow's machine in MAAS. The function `change` changes the machine and returns a function that
 * undoes the change, or null if the change is not possible.
 */
const ofMachine = (change: (machine: Machine) => (() => void) | null): Trouble => {
  let right: (() => void) | null = null;
  return {
    endsIn: AMBIGUOUS,
    arm({ rig }, row) {
      const machine = machineOf(rig, row);
      if (machine === undefined) return false;
      // Before a fault changes a machine, the simulated region finishes the machine's pending transitions. Pending transitions could undo the change
      // of the fault.
      rig.maas.sim.region.settle(machine);
      right = change(machine);
      return right !== null;
    },
    lift() {
      right?.();
      return true;
    },
  };
};

const force = (machine: Machine, status: (typeof STATUS)[keyof typeof STATUS], owner: string | null): void => {
  const { region } = craft.rig.maas.sim;
  region.setOwner(machine, owner);
  region.forceStatus(machine, status);
};

/** Makes a fault that sets the machine's status and owner in MAAS, as another user would, and later restores status and owner. */
const jump = (status: (typeof STATUS)[keyof typeof STATUS], owner: (now: string | null) => string | null): Trouble =>
  ofMachine((machine) => {
    const before = { status: machine.status, owner: machine.owner, token: machine.token };
    if (before.status === status && before.owner === owner(before.owner)) return null;
    force(machine, status, owner(before.owner));
    return () => {
      force(machine, before.status, before.owner);
      machine.token = before.token;
    };
  });

/** Makes a fault that releases a machine of the hub's MAAS user, as another person would, and does not restore the machine later. */
const released = (): Trouble =>
  ofMachine((machine) => {
    if (machine.owner === null) return null;
    force(machine, STATUS.ready, null);
    return () => {};
  });

const locked = (): Trouble =>
  ofMachine((machine) => {
    machine.locked = true;
    return () => {
      machine.locked = false;
    };
  });

/**
 * Makes a fault that deletes the machine from MAAS. With `recreated`, the host then appears in MAAS as a machine with a new id, as after a network
 * boot. If a scenario cannot use a new machine, the test restores the deleted machine, as a restore of MAAS from a backup would.
 */
const vanished = (recreated: boolean, scenario: Scenario): Trouble => {
  let restore = (): void => {};
  return {
    endsIn: AMBIGUOUS,
    arm({ rig }, row) {
      const machine = machineOf(rig, row);
      if (machine === undefined) return false;
      const { region } = rig.maas.sim;
      region.cancelJobs(machine);
      if (scenario.cannotReplaceMachine === true) restore = () => void region.state.machines.push(machine);
      region.state.machines = region.state.machines.filter((one) => one !== machine);
      if (!recreated) return true;
      region.state.machines.push({
        ...structuredClone(machine),
        systemId: `again${region.next("recreated")}`,
        status: STATUS.new,
        owner: null,
        token: null,
        hostname: `enlisted-${machine.systemId}`,
        userData: null,
        lastSync: null,
      });
      return true;
    },
    lift: () => {
      restore();
      return true;
    },
  };
};

const away = (): Trouble => ({
  endsIn: ["upstream_transient", "deploy_cloud_init_failure"],
  arm({ rig }) {
    rig.maas.sim.faults.add({ match: {}, kind: "status", code: 503, times: 1e9 });
    return true;
  },
  lift({ rig }) {
    const met = (rig.maas.sim.faults.list()[0]?.times ?? 0) < 1e9;
    rig.maas.sim.faults.clear();
    return met;
  },
});

const sealed = (calls: number): Trouble => ({
  endsIn: calls === 1 ? [] : ["upstream_transient"],
  arm({ rig }) {
    rig.secrets.awayFor = calls;
    return true;
  },
  lift({ rig }) {
    const met = rig.secrets.awayFor < calls;
    rig.secrets.awayFor = 0;
    return met;
  },
});

describe.each(FAULT_SCENARIOS)("$name", ({ scenario, stages }) => {
  it("converges when the secret store is away once at each stage", async () => {
    const told = await runWithTroubleAtEach(craft, scenario, stages, sealed(1));
    for (const stage of stages) tally.count(told.metAt.includes(stage));
    if (told.metAt.length > 0) await expectConverged(craft, scenario, told);
  });
});

describe.each(OF_THE_AGENT_ALONE)("$name", (scenario) => {
  it("completes while MAAS and the secret store are away, because it asks nothing of them", async () => {
    const troubles = [away(), sealed(1e9)];
    const { subject, driver } = await craft.start(scenario);
    const row = await driver.drive(subject.id, () => null);
    for (const trouble of troubles) expect(await trouble.arm(craft, row)).toBe(true);
    const end = await driver.drive(subject.id);
    for (const trouble of troubles) expect(trouble.lift(craft, end), "a request was made").toBe(false);
    await expectConverged(craft, scenario, { subject, driver, end });
  });
});

/**
 * In each run, the change happens at every second stage of the scenario, and an operator continues the workflow after each failure. Neighbouring
 * stages are disturbed in different runs, so that a repeated stage cannot hide what a change at the stage before left undone.
 */
describe.each(FAULT_HALVES)("$name", ({ scenario, stages }) => {
  it.each([
    ["MAAS is away", away],
    ["the secret store is away", () => sealed(1e9)],
    ["somebody marks the machine broken and mends it", () => jump(STATUS.broken, (now) => now)],
    ["somebody puts the machine into rescue mode and back", () => jump(STATUS.rescue_mode, (now) => now)],
    ["somebody locks the machine and unlocks it", locked],
    ["the machine is deleted", (scenario: Scenario) => vanished(false, scenario)],
    ["the machine is deleted and enlists again", (scenario: Scenario) => vanished(true, scenario)],
  ] as const)("converges when %s", async (_name, make) => {
    const told = await runWithTroubleAtEach(craft, scenario, stages, make(scenario), OPERATOR);
    for (const stage of stages) tally.count(told.metAt.includes(stage));
    if (told.metAt.length > 0) await expectConverged(craft, scenario, told, told.metAt.length);
  });

  it.skipIf(scenario.needsDeployedMachine)(
    "continues by the one recommended verb each time somebody has released the machine",
    async () => {
      const told = await runWithTroubleAtEach(craft, scenario, stages, released(), { mostVerbs: 1 });
      for (const stage of stages) tally.count(told.metAt.includes(stage));
      if (told.metAt.length === 0) return;
      expect(told.end.status, await told.driver.story(told.subject.id)).toBe("completed");
      if (told.metAt.length > 0) await expectConverged(craft, scenario, told, told.metAt.length);
    },
  );

  it("does nothing to a machine that another user has deployed, whichever verb an operator uses", async () => {
    const trouble = jump(STATUS.deployed, () => "somebody");
    let before = null as Outside | null;
    const taken: Trouble = {
      endsIn: AMBIGUOUS,
      async arm(stagecraft, row) {
        const armed = await trouble.arm(stagecraft, row);
        before = countedOf(craft.rig, row);
        return armed;
      },
      // Until the test has tried the operator's verbs, the machine must belong to MAAS's user `somebody`. `lift` therefore does not give the machine
      // back to its earlier owner.
      lift: () => true,
    };
    const told = await runWithTroubleAtEach(craft, scenario, stages, taken, {
      ...OPERATOR,
      mustFail: true,
      async whenFailed({ subject, driver, end }) {
        for (const verb of ["adopt", "restart_clean"] as const) {
          await driver.verb(subject.id, verb);
          const again = await driver.drive(subject.id);
          expectExplained(craft, again, AMBIGUOUS);
          const machine = machineOf(craft.rig, end);
          expect(machine, verb).toMatchObject({ status: STATUS.deployed, owner: "somebody" });
          expect(countedOf(craft.rig, end), verb).toEqual(before);
        }
        const machine = machineOf(craft.rig, end);
        if (scenario.needsDeployedMachine === true) trouble.lift(craft, end);
        else if (machine !== undefined) force(machine, before?.commission === 0 ? STATUS.new : STATUS.ready, null);
      },
    });
    for (const stage of stages) tally.count(told.metAt.includes(stage));
    if (told.metAt.length > 0) await expectConverged(craft, scenario, told, told.metAt.length);
  });

  it("is compensated at the entry of the stages, and begins again", async () => {
    const { subject, driver } = await craft.start(scenario);
    const asked = new Set<string>();
    const end = await driver.drive(subject.id, (row) => async (look) => {
      if (!stages.includes(row.stage) || asked.has(row.stage)) return plainly(look);
      asked.add(row.stage);
      await driver.verb(subject.id, "restart_clean");
      return plainly(await driver.claim(subject.id));
    });
    expect([...asked].toSorted()).toEqual([...stages].toSorted());
    await expectConverged(craft, scenario, { subject, driver, end });
    for (const _stage of stages) tally.count(true);
  });
});
