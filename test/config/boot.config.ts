import { defineConfig } from "vitest/config";

/** The test files of the boot suite run one after the other, because each test file uses all cores of the computer. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/boot/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/.muster/**"],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
