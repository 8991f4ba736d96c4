import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectConverged, runWithTroubleAtEach, Tally, type Trouble } from "./converge.ts";
import { countedOf, FAULT_SCENARIOS, type Stagecraft, setStage } from "./scenarios.ts";

/**
 * The tests let each request that a workflow's stage makes to MAAS stay unanswered once. Either the request to MAAS is lost, or MAAS carries the
 * request out and its answer is lost.
 */
const SILENCES = {
  "is never received": "timeout_before",
  "is accepted and not answered": "timeout_after_accept",
} as const;
const MOST_REQUESTS = 40;
/** The timeouts for requests to MAAS are longer than any request to the simulated region takes, and short enough to keep the suite fast. */
const PATIENCE = { quickMs: 300, slowMs: 300 };

let craft: Stagecraft;
const tally = new Tally();
beforeAll(async () => {
  craft = await setStage(600);
});
afterAll(async () => {
  tally.print("silences");
  await craft?.close();
});

const once = (kind: (typeof SILENCES)[keyof typeof SILENCES], after: number): Trouble => ({
  endsIn: [],
  arm: ({ rig }) => {
    rig.patience = PATIENCE;
    rig.maas.sim.faults.add({ match: {}, times: 1, after, kind });
    return true;
  },
  lift: ({ rig }) => {
    const met = rig.maas.sim.faults.list().length === 0;
    rig.maas.sim.faults.clear();
    rig.patience = null;
    return met;
  },
});

/**
 * In each run of a scenario, one request of each stage stays unanswered. In the first run, each stage's first request stays unanswered, in the next
 * run the second request, and so on, as long as a stage makes so many requests.
 */
describe.each(FAULT_SCENARIOS)("$name", ({ scenario, stages }) => {
  it.each(Object.entries(SILENCES))("converges whichever request of its stages %s", async (_name, kind) => {
    let left: readonly string[] = stages;
    for (let request = 0; left.length > 0; request += 1) {
      expect(request).toBeLessThan(MOST_REQUESTS);
      const told = await runWithTroubleAtEach(craft, scenario, left, once(kind, request));
      for (const stage of left) tally.count(told.metAt.includes(stage));
      left = told.metAt;
      if (left.length === 0) return;
      expect(told.end.status, await told.driver.story(told.subject.id)).toBe("completed");
      await expectConverged(craft, scenario, told);
      expect(countedOf(craft.rig, told.end)).toEqual(scenario.outside);
    }
  });
});
