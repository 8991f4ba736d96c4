import { defineConfig } from "vitest/config";

/**
 * The vitest configuration of `npm run test:boot`, which boots real hosts. The test files of the boot suite run in sequence, because each uses all
 * cores of the machine.
 */
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
