import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Test suites that use the processor for most of their time, in the order in which vitest starts the suites' files. The suites with the longest test
 * files come first, so that vitest's workers share the short test files at the end of the run.
 */
const WORKING = ["properties", "integration", "fidelity", "unit"];
/** Test suites that wait for other processes for most of their time. */
const WAITING = ["e2e", "db", "packages"];
/**
 * The number of test files of the suites in `WORKING` that vitest starts after each test file of a suite in `WAITING`. A mix of working and waiting
 * test files keeps the processor busy, while three waiting test files would leave the processor idle.
 */
const WORKING_PER_WAITING = 2;

/** By default, vitest starts the projects alphabetically, so that the longest test file runs alone at the end. */
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
