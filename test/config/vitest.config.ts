import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./longest-first.ts";
import { chosenHere } from "./rotation/rotation.ts";

/** Time limits in milliseconds, which only a hang reaches. */
const LIMITS = { testTimeout: 1_200_000, hookTimeout: 600_000 };
const exclude = ["**/node_modules/**", "**/.muster/**", ...longTestsLeftOut(process.argv.slice(2))];

/** `npm test` alone leaves most of the long tests out. With any further argument it runs all that the argument names. */
function longTestsLeftOut(args: readonly string[]): readonly string[] {
  if (args.join(" ") !== "run --config test/config/vitest.config.ts") return [];
  const { because, leftOut } = chosenHere();
  console.info(`Long tests: ${because}`);
  return leftOut;
}

/**
 * A test's timeout is longer than one wait of `until`, so that the test's error names the condition that was not met. With `isolate: false`, the test
 * files of a project share a worker's modules, so the worker loads each module once. No test file may leave a changed module, environment variable or
 * clock behind. In the suites that start other processes (`packages`, `e2e`), each test file has its own worker.
 */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    // Many test suites wait for most of their time, so each processor core serves two vitest workers. More than eight workers could use up
    // PostgreSQL's connections.
    maxWorkers: Math.min(availableParallelism() * 2, 8),
    // Node.js's own 16 MiB for young objects make the garbage collector take a tenth of the tests' processor time.
    execArgv: ["--max-semi-space-size=64"],
    sequence: { sequencer: LongestFirst },
    globalSetup: ["./compile-cache.ts", "../support/database-server.ts"].map(
      (path) => new URL(path, import.meta.url).pathname,
    ),
    projects: [
      {
        test: {
          name: "unit",
          ...LIMITS,
          isolate: false,
          include: [
            "{agent,hub,shared,cloud-init,packaging}/**/*.test.ts",
            "test/fakes/**/*.test.ts",
            "test/*.test.ts",
          ],
          exclude,
        },
      },
      {
        test: {
          name: "db",
          isolate: false,
          include: ["test/db/**/*.test.ts"],
          exclude,
          ...LIMITS,
        },
      },
      {
        test: {
          name: "properties",
          isolate: false,
          include: ["test/properties/**/*.test.ts"],
          exclude,
          ...LIMITS,
        },
      },
      {
        test: {
          name: "integration",
          isolate: false,
          include: ["test/integration/**/*.test.ts"],
          exclude,
          ...LIMITS,
        },
      },
      {
        test: {
          name: "packages",
          include: ["test/packages/**/*.test.ts"],
          exclude,
          ...LIMITS,
        },
      },
      { test: { name: "fidelity", include: ["test/fidelity/**/*.test.ts"], exclude, ...LIMITS } },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude,
          ...LIMITS,
        },
      },
    ],
  },
});
