/** Every second stage of each scenario, for the tests that disturb several stages in one run. */
import { FAULT_SCENARIOS, SCENARIOS } from "./scenarios.ts";

/** Divides stages into every second stage, so that neighbouring stages are in different halves. */
const halvesOf = (stages: readonly string[]) =>
  (["first", "second"] as const)
    .map((half, rest) => ({ half, stages: stages.filter((_stage, position) => position % 2 === rest) }))
    .filter((one) => one.stages.length > 0);

/** The scenarios with every second of their stages, for the tests that disturb several stages in one run. */
export const STAGE_HALVES = SCENARIOS.flatMap((scenario) =>
  halvesOf(scenario.stages).map(({ half, stages }) => ({ scenario, stages, half, name: scenario.name })),
);

/** Every second of the stages at which the suites try each fault of MAAS. */
export const FAULT_HALVES = FAULT_SCENARIOS.flatMap(({ scenario, name, stages: all }) =>
  halvesOf(all).map(({ half, stages }) => ({ scenario, stages, name: `each ${half} stage of two of ${name}` })),
);
