import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./longest-first.ts";

const exclude = ["**/node_modules/**", "**/.muster/**"];

/**
 * Unit tests stand beside the code; what needs a database, a process or several files stands in test/. A test has longer than one wait
 * of `until`, which says what was waited for in vain.
 */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    // Most suites wait for about a third of their time: two cores are for three of them. Eight keep PostgreSQL at its connections.
    maxWorkers: Math.min(availableParallelism() + 1, 8),
    sequence: { sequencer: LongestFirst },
    globalSetup: ["./compile-cache.ts", "../support/database-server.ts"].map(
      (path) => new URL(path, import.meta.url).pathname,
    ),
    projects: [
      {
        test: {
          name: "unit",
          testTimeout: 180_000,
          // They keep nothing beside their values, so one worker's modules serve all its files: a third of their time.
          isolate: false,
          include: [
            "{agent,hub,shared,cloud-init,packaging}/**/*.test.ts",
            "test/fakes/**/*.test.ts",
            "test/*.test.ts",
          ],
          exclude,
        },
      },
      { test: { name: "db", include: ["test/db/**/*.test.ts"], exclude, testTimeout: 180_000, hookTimeout: 120_000 } },
      {
        test: {
          name: "properties",
          include: ["test/properties/**/*.test.ts"],
          exclude,
          testTimeout: 180_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          exclude,
          testTimeout: 300_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "packages",
          include: ["test/packages/**/*.test.ts"],
          exclude,
          testTimeout: 300_000,
          hookTimeout: 240_000,
        },
      },
      { test: { name: "fidelity", include: ["test/fidelity/**/*.test.ts"], exclude, testTimeout: 180_000 } },
      {
        test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], exclude, testTimeout: 300_000, hookTimeout: 120_000 },
      },
    ],
  },
});
