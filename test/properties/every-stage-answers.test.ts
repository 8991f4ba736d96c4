import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FailureClass } from "../../shared/failures.ts";
import type { FaultKind } from "../fakes/maas/http/faults.ts";
import { expectConverged, OPERATOR, runWithTroubleAtEach, Tally, type Trouble } from "./converge.ts";
import { FAULT_HALVES } from "./halves.ts";
import { countedOf, FAULT_SCENARIOS, type Stagecraft, setStage } from "./scenarios.ts";

/** The tests make MAAS answer each request of each workflow stage wrongly once. */
interface Answer {
  readonly kind: FaultKind;
  readonly code?: number;
  readonly body?: string;
  readonly endsIn: readonly FailureClass[];
}
const ANSWERS: Record<string, Answer> = {
  "503": { kind: "status", code: 503, body: "Service Unavailable", endsIn: [] },
  "409 with Retry-After": { kind: "conflict_html_retry_after", endsIn: [] },
  // An answer 409 without the header Retry-After means that MAAS refuses the call because of the machine's state. If a stage cannot tell why MAAS
  // refused the call, the workflow waits for a person's decision. The hub treats a failed deploy whose events it cannot read as failed for good
  // (lifecycle 4.6).
  "409 without Retry-After": {
    kind: "status",
    code: 409,
    body: "Conflict",
    endsIn: ["state_ambiguity", "deploy_cloud_init_failure"],
  },
  "a BMC that does not answer": { kind: "bmc_500", endsIn: ["bmc_power_failure"] },
  "a body cut short": { kind: "truncated_body", endsIn: [] },
};
/** No stage makes more requests to MAAS than `MOST_REQUESTS`. */
const MOST_REQUESTS = 40;

let craft: Stagecraft;
const tally = new Tally();
beforeAll(async () => {
  craft = await setStage(1600);
});
afterAll(async () => {
  tally.print("answers");
  await craft?.close();
});

const once = ({ endsIn, ...fault }: Answer, after: number): Trouble => ({
  endsIn,
  arm: ({ rig }) => {
    rig.maas.sim.faults.add({ match: {}, times: 1, after, ...fault });
    return true;
  },
  lift: ({ rig }) => {
    const met = rig.maas.sim.faults.list().length === 0;
    rig.maas.sim.faults.clear();
    return met;
  },
});

const withoutFailure = Object.entries(ANSWERS).filter(([, { endsIn }]) => endsIn.length === 0);
const withFailure = Object.entries(ANSWERS).filter(([, { endsIn }]) => endsIn.length > 0);

/**
 * In each run of a scenario, the fault hits one request of each stage. In the first run, the fault hits each stage's first request, in the next run
 * the second request, and so on, as long as a stage makes so many requests.
 */
describe.each(FAULT_SCENARIOS)("$name", ({ scenario, stages }) => {
  it.each(withoutFailure)("converges whichever request of its stages is answered by %s", async (_name, answer) => {
    let left: readonly string[] = stages;
    for (let request = 0; left.length > 0; request += 1) {
      expect(request).toBeLessThan(MOST_REQUESTS);
      const told = await runWithTroubleAtEach(craft, scenario, left, once(answer, request));
      for (const stage of left) tally.count(told.metAt.includes(stage));
      left = told.metAt;
      if (left.length === 0) return;
      expect(told.end.status, await told.driver.story(told.subject.id)).toBe("completed");
      await expectConverged(craft, scenario, told);
      expect(countedOf(craft.rig, told.end)).toEqual(scenario.outside);
    }
  });
});

/** An operator continues each workflow that a fault made fail, and the next fault hits the workflow's next stage but one. */
describe.each(FAULT_HALVES)("$name", ({ scenario, stages }) => {
  it.each(withFailure)("converges whichever request is answered by %s", async (_name, answer) => {
    let left: readonly string[] = stages;
    for (let request = 0; left.length > 0; request += 1) {
      expect(request).toBeLessThan(MOST_REQUESTS);
      const told = await runWithTroubleAtEach(craft, scenario, left, once(answer, request), OPERATOR);
      for (const stage of left) tally.count(told.metAt.includes(stage));
      left = told.metAt;
      if (left.length === 0) return;
      await expectConverged(craft, scenario, told);
      if (told.verbs === 0) expect(countedOf(craft.rig, told.end)).toEqual(scenario.outside);
    }
  });
});
