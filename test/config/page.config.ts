import { defineConfig } from "vitest/config";

/** The test files of the page suite run one after the other, because each test file starts a hub and a browser. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/page/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/.muster/**"],
    globalSetup: ["./compile-cache.ts", "../support/database-server.ts"].map(
      (path) => new URL(path, import.meta.url).pathname,
    ),
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
