import { defineConfig } from "vitest/config";

/**
 * The vitest configuration of `npm run test:page`, which tests the operators' page in a real browser. The test files of the page suite run in
 * sequence, because each starts a hub and a browser.
 */
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
