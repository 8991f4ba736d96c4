import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The suites in the order in which their files begin: those of minutes first, so that at the end short ones are left to share among the workers. */
const ORDER = ["properties", "e2e", "integration", "db", "packages", "fidelity", "unit"];

/** Otherwise the projects begin by the alphabet, and the longest file of all runs alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = (file: TestSpecification): number => ORDER.indexOf(file.project.name);
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}
