import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "muster-start-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Prints the address of each module that Node.js loads. */
const PRINT_MODULES = `
  import { registerHooks } from "node:module";
  registerHooks({ load: (url, context, next) => (console.log(url), next(url, context)) });
`;

/** Starts the agent without a configuration, and returns the names of the repository's modules that the agent has loaded. */
async function loadedAtStart(): Promise<string[]> {
  const repository = new URL("../", import.meta.url).href;
  const { exitCode, stdout } = await execa(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(PRINT_MODULES)}`, "agent/main.ts"],
    { cwd: new URL(repository), env: { MUSTER_ROOT: root }, reject: false },
  );
  expect(exitCode).toBe(78);
  return stdout.split("\n").flatMap((url) => (url.startsWith(repository) ? [url.slice(repository.length)] : []));
}

describe("the agent's start", () => {
  it("loads neither the code nor the schemas of a task, nor the looks at the host, because they would stay in an idle agent's memory", async () => {
    const modules = await loadedAtStart();
    const ofTasks = modules.filter((name) => /^(agent|shared)\/tasks\//.test(name));
    expect(ofTasks.sort()).toEqual([
      "agent/tasks/cancelled.ts",
      "agent/tasks/index.ts",
      "shared/tasks/order.ts",
      "shared/tasks/plan.ts",
      "shared/tasks/task-types.ts",
    ]);
    const ofHealth = modules.filter((name) => name.startsWith("agent/health/"));
    expect(ofHealth.sort()).toEqual(["agent/health/hardware-print.ts", "agent/health/watch.ts"]);
  });
});
