/** The program of a worker process in tests, which is the agent's own program but performs only the work `TEST_WORK`. */
import { spawn } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { performer } from "../../agent/system/workers/define-work.ts";
import { runWorkerProgram } from "../../agent/system/workers/worker-program.ts";
import { TEST_WORK } from "./test-work.ts";

const work = performer(TEST_WORK, async ({ starts, until, way }, run) => {
  appendFileSync(starts, "start\n");
  if (way === "crash") process.kill(process.pid, "SIGKILL");
  if (way === "throw") throw new Error("the disk is on fire, password=hunter2");
  if (way === "deaf") {
    process.removeAllListeners("SIGTERM");
    process.on("SIGTERM", () => undefined);
  }
  if (way === "tool") {
    spawn("sleep", ["1000"], { stdio: "ignore" });
    process.kill(process.pid, "SIGKILL");
  }
  for (let done = 0; !existsSync(until); done += 1) {
    if (way !== "silent") run.progress({ step: "wait", done, bytes: done * 10 });
    if (way !== "deaf") run.throwIfStopped();
    await sleep(10);
  }
  return { said: "done" };
});

process.exit(await runWorkerProgram(process.argv.slice(3), [work]));
