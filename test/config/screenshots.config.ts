import { defineConfig } from "vitest/config";

/** Draws the pictures of docs/console.md. It is no suite: it proves nothing, and the pictures are committed. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/screenshots/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/.muster/**"],
    globalSetup: ["./compile-cache.ts", "../support/database-server.ts"].map(
      (path) => new URL(path, import.meta.url).pathname,
    ),
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
