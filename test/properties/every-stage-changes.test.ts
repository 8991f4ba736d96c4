import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FailureClass } from "../../shared/failures.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import {
  expectConverged,
  expectExplained,
  nextVerbOf,
  recover,
  runWithTrouble,
  runWithTroubleAtEach,
  Tally,
  type Told,
  type Trouble,
} from "./converge.ts";
import { plainly } from "./drive.ts";
import {
  countedOf,
  FAULT_CASES,
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

async function expectTroubleOver(scenario: Scenario, told: Told, trouble: Trouble): Promise<void> {
  tally.count(told.met);
  if (!told.met) return;
  const failed = told.end.status.startsWith("failed_");
  if (failed) expectExplained(craft, told.end, trouble.endsIn);
  await expectConverged(craft, scenario, told, await recover(told), "by others too");
}

describe.each(FAULT_SCENARIOS)("$name", ({ scenario, stages }) => {
  it("converges when the secret store is away once at each stage", async () => {
    const told = await runWithTroubleAtEach(craft, scenario, stages, sealed(1));
    for (const stage of stages) tally.count(told.metAt.includes(stage));
    await expectConverged(craft, scenario, told, told.end);
  });
});

describe.each(OF_THE_AGENT_ALONE)("$name", (scenario) => {
  it("completes while MAAS and the secret store are away, because it asks nothing of them", async () => {
    const troubles = [away(), sealed(1e9)];
    const { subject, driver } = await craft.start(scenario);
    const row = await driver.drive(subject.id, () => null);
    for (const trouble of troubles) expect(trouble.arm(craft, row)).toBe(true);
    const end = await driver.drive(subject.id);
    for (const trouble of troubles) expect(trouble.lift(craft, end), "a request was made").toBe(false);
    await expectConverged(craft, scenario, { subject, driver, met: false, end }, end);
  });
});

describe.each(FAULT_CASES)("$stage of $scenario.name", ({ scenario, stage }) => {
  it.each([
    ["MAAS is away", away],
    ["the secret store is away", () => sealed(1e9)],
    ["somebody marks the machine broken and mends it", () => jump(STATUS.broken, (now) => now)],
    ["somebody puts the machine into rescue mode and back", () => jump(STATUS.rescue_mode, (now) => now)],
    ["somebody locks the machine and unlocks it", locked],
    ["the machine is deleted", (scenario: Scenario) => vanished(false, scenario)],
    ["the machine is deleted and enlists again", (scenario: Scenario) => vanished(true, scenario)],
  ] as const)("converges when %s", async (_name, make) => {
    const trouble = make(scenario);
    await expectTroubleOver(scenario, await runWithTrouble(craft, scenario, stage, trouble), trouble);
  });

  it("continues by the one recommended verb after somebody released the machine", async () => {
    const told = await runWithTrouble(craft, scenario, stage, released());
    const { driver, subject, end } = told;
    tally.count(told.met);
    if (!told.met) return;
    if (end.status.startsWith("failed_")) {
      expectExplained(craft, end, AMBIGUOUS);
      await driver.verb(subject.id, nextVerbOf(end));
    }
    const last = await driver.drive(subject.id);
    expect(last.status, `${last.failureMessage}\n${await driver.story(subject.id)}`).toBe("completed");
    await expectConverged(craft, scenario, told, last, "by others too");
  });

  it("does nothing to a machine that another user has deployed, whichever verb an operator uses", async () => {
    const trouble = jump(STATUS.deployed, () => "somebody");
    let before = null as Outside | null;
    const told = await runWithTrouble(craft, scenario, stage, {
      endsIn: AMBIGUOUS,
      arm(stagecraft, row) {
        const armed = trouble.arm(stagecraft, row);
        before = countedOf(craft.rig, row);
        return armed;
      },
      // Until the test has tried the operator's verbs, the machine must belong to MAAS's user `somebody`. `lift` therefore does not give the machine
      // back to its earlier owner.
      lift: () => true,
    });
    if (told.met) {
      expectExplained(craft, told.end, AMBIGUOUS);
      for (const verb of ["adopt", "restart_clean"] as const) {
        await told.driver.verb(told.subject.id, verb);
        const again = await told.driver.drive(told.subject.id);
        expectExplained(craft, again, AMBIGUOUS);
        const machine = machineOf(craft.rig, told.end);
        expect(machine, verb).toMatchObject({ status: STATUS.deployed, owner: "somebody" });
        expect(countedOf(craft.rig, told.end), verb).toEqual(before);
      }
      const machine = machineOf(craft.rig, told.end);
      if (machine !== undefined) force(machine, before?.commission === 0 ? STATUS.new : STATUS.ready, null);
    }
    await expectTroubleOver(scenario, told, trouble);
  });

  it("is compensated without having run, and begins again", async () => {
    const { subject, driver } = await craft.start(scenario);
    let asked = false;
    const end = await driver.drive(subject.id, (row) => async (look) => {
      if (row.stage !== stage || asked) return plainly(look);
      asked = true;
      await driver.verb(subject.id, "restart_clean");
      return plainly(await driver.claim(subject.id));
    });
    expect(asked).toBe(true);
    await expectConverged(craft, scenario, { subject, driver, met: true, end }, end);
    tally.count(true);
  });
});
