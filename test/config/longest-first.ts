import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The suites in the order in which their files begin: those of minutes first, so that at the end short ones are left to share among the workers. */
const WORKING = ["properties", "integration", "fidelity", "unit"];
/** Suites that wait for other processes for most of their time. */
const WAITING = ["e2e", "db", "packages"];
/** So many that work begin with each that waits: side by side they keep the processor busy, where three that wait would leave it idle. */
const WORKING_PER_WAITING = 2;

/** Otherwise the projects begin by the alphabet, and the longest file of all runs alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const of = (projects: readonly string[]): TestSpecification[] =>
      projects.flatMap((name) => sorted.filter((file) => file.project.name === name));
    const working = of(WORKING);
    const begun = of(WAITING).flatMap((waiting) => [waiting, ...working.splice(0, WORKING_PER_WAITING)]);
    const known = new Set([...begun, ...working]);
    return [...begun, ...working, ...sorted.filter((file) => !known.has(file))];
  }
}
