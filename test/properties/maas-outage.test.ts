import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Workflow as WorkflowRow } from "../../hub/db/schema/index.ts";
import { ONBOARD } from "../../hub/workflows/onboarding/onboard.ts";
import { type Driver, plainly } from "./drive.ts";
import { countedOf, type Scenario, STAGE_CASES, type Stagecraft, type Subject, setStage } from "./scenarios.ts";

/** The duration, in seconds, of an upgrade of MAAS, during which workflows wait without a failure (lifecycle 4.6). */
const UPGRADE_SECONDS = 300;

let craft: Stagecraft;
beforeAll(async () => {
  craft = await setStage(ASKING.length);
});
afterAll(() => craft?.close());

const absenceOf = (row: Pick<WorkflowRow, "state">): { since: string; looks: number } | undefined =>
  (row.state as { $engine?: { absence?: { since: string; looks: number } } }).$engine?.absence;
const secondsAway = (row: WorkflowRow): number => {
  const since = absenceOf(row)?.since;
  return since === undefined ? 0 : (Date.now() - Date.parse(since)) / 1000;
};

/** Drains and removes do not call MAAS, so the test leaves them out. */
const ASKING = STAGE_CASES.filter(({ scenario }) => [ONBOARD, "release"].includes(scenario.kind));

interface Host {
  readonly scenario: Scenario;
  readonly subject: Subject;
  readonly driver: Driver;
  readonly stage: string;
}

describe("hosts at every stage of every operation that asks MAAS", () => {
  it("survive five minutes without MAAS: no operator acts, no attempt is counted, nothing is done twice", async () => {
    const { rig } = craft;
    const hosts: Host[] = [];
    for (const { scenario, stage } of ASKING) {
      const { subject, driver } = await craft.start(scenario);
      const row = await driver.drive(subject.id, (one) => (one.stage === stage ? null : plainly));
      expect(row.status, await driver.story(subject.id)).toBe("running");
      hosts.push({ scenario, subject, driver, stage });
    }
    rig.maas.sim.faults.add({ match: {}, kind: "status", code: 503, times: 1e9 });
    const waited: string[] = [];
    for (const { subject, driver, stage } of hosts) {
      const row = await driver.drive(subject.id, (one) => (secondsAway(one) >= UPGRADE_SECONDS ? null : plainly));
      const told = `${stage}: ${row.failureMessage}\n${await driver.story(subject.id)}`;
      expect(["running", "completed"], told).toContain(row.status);
      if (row.status !== "running") continue;
      waited.push(row.stage);
      expect(row.waitReason, told).toContain("MAAS to answer again (maas_unavailable): unavailable since");
      // The engine runs a waiting stage less and less often, so that hubs do not overload a region that starts up.
      expect(absenceOf(row)?.looks ?? 0, told).toBeGreaterThanOrEqual(8);
      expect(absenceOf(row)?.looks ?? 0, told).toBeLessThanOrEqual(20);
      expect(row.attempt, told).toBe(1);
    }
    // During the outage of MAAS, a stage without a request to MAAS completes, and its workflow waits at a later stage.
    expect(new Set(waited).size).toBeGreaterThanOrEqual(15);
    rig.maas.sim.faults.clear();
    for (const { scenario, subject, driver, stage } of hosts) {
      const end = await driver.drive(subject.id);
      expect(end.status, `${stage}: ${end.failureMessage}\n${await driver.story(subject.id)}`).toBe("completed");
      await scenario.expectEnd(rig, subject);
      expect(countedOf(rig, end), stage).toEqual(scenario.outside);
    }
  });
});
