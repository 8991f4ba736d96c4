import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, it, vi } from "vitest";
import { processTableOf } from "../system/processes.ts";
import { endProcesses } from "./end-processes.ts";

const DAY_MS = 86_400_000;
let child: ChildProcess | null = null;
afterEach(() => {
  vi.restoreAllMocks();
  child?.kill("SIGKILL");
});

/** Starts a shell that handles SIGTERM by the commands `onTerm`, and ends it as the agent ends a tenant's process. */
async function end(onTerm: string, termMs: number) {
  child = spawn("/bin/sh", ["-c", `trap '${onTerm}' TERM; echo ready; while :; do sleep 0.1; done`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { pid, stdout } = child;
  if (stdout === null) throw new Error("The shell has no output.");
  await once(stdout, "data");
  const owns = (one: { pid: number }): boolean => one.pid === pid;
  const ownership = { owns, isOwnUid: () => false, slice: null, release: async () => null };
  const timing = { termMs, killMs: 60_000, lookEveryMs: 20 };
  return endProcesses(processTableOf("/"), ownership, new AbortController().signal, timing);
}

/** Steps the wall clock at each reading of it. */
function stepTheClock(stepMs: number): void {
  let now = Date.now();
  vi.spyOn(Date, "now").mockImplementation(() => {
    now += stepMs;
    return now;
  });
}

it("A process has its whole time to end although the wall clock is stepped forward", async () => {
  stepTheClock(DAY_MS);
  expect(await end("sleep 0.5; exit 0", 60_000)).toEqual({ found: 1, killed: 0, survivors: [], limit: null });
});

it("A process that ignores SIGTERM is killed although the wall clock is stepped back", async () => {
  stepTheClock(-DAY_MS);
  expect(await end("", 200)).toEqual({ found: 1, killed: 1, survivors: [], limit: null });
});
