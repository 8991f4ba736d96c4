import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { workflows } from "../../hub/db/schema/index.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { WorkflowServices } from "../../hub/workflows/services.ts";
import { expectConverged, OPERATOR, runWithTroubleAtEach, Tally, type Trouble } from "./converge.ts";
import { type Driver, type Interrupt, plainly } from "./drive.ts";
import { STAGE_HALVES } from "./halves.ts";
import { countedOf, SCENARIOS, STAGE_CASES, type Stagecraft, setStage } from "./scenarios.ts";

/**
 * The tests interrupt every stage of every workflow in every way in which a kill of the hub or a lost lease can. Each interrupted workflow must end
 * like an uninterrupted one, and each effect outside the database must happen once.
 */
let craft: Stagecraft;
const tally = new Tally();
beforeAll(async () => {
  craft = await setStage(500);
});
afterAll(async () => {
  tally.print("interruptions");
  await craft?.close();
});

const INTERRUPTS: Record<string, (driver: Driver) => Interrupt> = {
  "killed before it did anything": (driver) => async (look) => {
    await plainly(await driver.claim(look.row.id));
  },
  "killed after its outside effect and before its commit": (driver) => async (look) => {
    await look.run();
    await plainly(await driver.claim(look.row.id));
  },
  "run twice, the first result arriving late": (driver) => async (look) => {
    const late = await look.run();
    await plainly(await driver.claim(look.row.id));
    expect(await late.commit()).toBe(false);
  },
  "taken over while it was still running": (driver) => async (look) => {
    const other = await driver.claim(look.row.id);
    const [late, now] = await Promise.all([look.run(), other.run()]);
    expect(await late.commit()).toBe(false);
    expect(await now.commit()).toBe(true);
  },
};

describe("the suite", () => {
  it("reaches each stage of each kind of workflow", () => {
    for (const { kind, stageNames } of workflowsOf({} as WorkflowServices)) {
      const reached = STAGE_CASES.filter(({ scenario }) => scenario.kind === kind).map(({ stage }) => stage);
      expect(reached.toSorted(), kind).toEqual([...stageNames].toSorted());
    }
  });
});

describe.each(SCENARIOS)("$name", (scenario) => {
  it("goes through all its stages in order", async () => {
    const { subject, driver } = await craft.start(scenario);
    const end = await driver.drive(subject.id);
    await expectConverged(craft, scenario, { subject, driver, end });
    expect(countedOf(craft.rig, end)).toEqual(scenario.outside);
    const kind = driver.kinds.find((one) => one.kind === scenario.kind);
    const left = (await listStageEvents(craft.rig.test.database.db, subject.id)).filter((event) =>
      ["succeeded", "skipped"].includes(event.status),
    );
    expect([...new Set(left.map((event) => event.stage))]).toEqual(kind?.stageNames);
  });
});

/**
 * In each run of a scenario, the test interrupts every second stage. Neighbouring stages are interrupted in different runs, so that a repeated stage
 * cannot hide what an interrupt of the stage before left undone.
 */
describe.each(STAGE_HALVES)("$name", ({ scenario, half, stages }) => {
  it.each(Object.entries(INTERRUPTS))(`converges when each ${half} stage of two is %s`, async (_how, interruptOf) => {
    const { subject, driver } = await craft.start(scenario);
    const interrupt = interruptOf(driver);
    const reached = new Set<string>();
    const end = await driver.drive(subject.id, (row) => {
      if (!stages.includes(row.stage)) return plainly;
      reached.add(row.stage);
      return interrupt;
    });
    expect([...reached].toSorted()).toEqual(stages.toSorted());
    expect(end.status, `${end.failureMessage}\n${await driver.story(subject.id)}`).toBe("completed");
    await expectConverged(craft, scenario, { subject, driver, end });
    expect(countedOf(craft.rig, end)).toEqual(scenario.outside);
    for (const _stage of stages) tally.count(true);
  });
});

describe.each(STAGE_CASES)("$stage of $scenario.name", ({ scenario, stage }) => {
  it("is cancelled on entry, and compensates exactly what was done", async () => {
    const { subject, driver } = await craft.start(scenario);
    let asked = false;
    const end = await driver.drive(subject.id, (row) => async (look) => {
      if (row.stage !== stage || asked) return plainly(look);
      asked = true;
      await driver.verb(subject.id, "cancel");
      return plainly(await driver.claim(subject.id));
    });
    expect(asked).toBe(true);
    expect(end.status, await driver.story(subject.id)).toBe("cancelled");
    await scenario.expectCancelled(craft.rig, subject, end);
    tally.count(true);
  });
});

const expired: Trouble = {
  endsIn: null,
  async arm({ rig }, { id }) {
    await rig.test.database.db
      .update(workflows)
      .set({ stageDeadline: sql`now() - interval '1 second'` })
      .where(eq(workflows.id, id));
    return true;
  },
  lift: () => true,
};

describe.each(STAGE_HALVES)("$name", ({ scenario, half, stages }) => {
  it(`fails with the timeout of each ${half} stage of two or adopts a late success, and continues by the recommended verb`, async () => {
    const told = await runWithTroubleAtEach(craft, scenario, stages, expired, OPERATOR);
    for (const stage of stages) tally.count(told.metAt.includes(stage));
    await expectConverged(craft, scenario, told);
  });
});
