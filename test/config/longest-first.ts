import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Test suites that use the processor for most of their time, in the order in which vitest starts their files. The suites with the longest files come
 * first, so that the workers share the short files at the end of the run.
 */
const WORKING = ["properties", "integration", "fidelity", "unit"];
/** Test suites that wait for other processes for most of their time. */
const WAITING = ["e2e", "db", "packages"];
/**
 * After each file of a waiting suite, vitest starts this number of files of working suites. Working and waiting files side by side keep the processor
 * busy, while three waiting files would leave the processor idle.
 */
const WORKING_PER_WAITING = 2;

/**
 * Replaces vitest's order of test files. With vitest's order, the projects start alphabetically, and the longest file runs alone at the end of the
 * run.
 */
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
