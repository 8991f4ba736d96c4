import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { quietAgentLog } from "../../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../../test/fakes/hub/orders.ts";
import { type Child, startChild } from "../../../test/support/child.ts";
import { TEST_WORK } from "../../../test/support/test-work.ts";
import { performTestWork, TEST_PROGRAM, workersAt } from "../../../test/support/test-workers.ts";
import { until } from "../../../test/support/until.ts";
import { TaskCancelled } from "../../tasks/cancelled.ts";
import { unitArguments } from "./launch.ts";
import { aliveInSession, sendSignal } from "./processes.ts";
import { readWorkFile, STARTED_FILE, WorkStarted } from "./work-files.ts";

let folder: string;
let taskId: string;
let agents: Child[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "muster-workers-"));
  taskId = newTaskId();
  agents = [];
});
afterEach(async () => {
  for (const agent of agents) await agent.stop(0);
  const started = readStarted();
  for (const { pid } of started === null ? [] : aliveInSession(started)) sendSignal(pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const input = (way: "normal" | "crash" | "throw" | "deaf" | "silent" | "tool" = "normal") => ({
  starts: join(folder, "starts"),
  until: join(folder, "until"),
  way,
});
const starts = (): number => readFileSync(join(folder, "starts"), "utf8").split("\n").length - 1;
const partFolder = () => join(folder, "work", taskId, "one");
const readStarted = () => readWorkFile(partFolder(), STARTED_FILE, WorkStarted);
const hasStarted = () => until("the work's start", () => (readStarted() === null ? undefined : true));
const letEnd = () => writeFileSync(join(folder, "until"), "");
const workers = () => workersAt(folder, quietAgentLog);

function agent(): Child {
  const child = startChild({
    name: "agent",
    script: join(import.meta.dirname, "../../../test/support/working-agent.ts"),
    args: [folder, taskId, JSON.stringify(input())],
    logFile: join(folder, "agent.log"),
  });
  agents.push(child);
  return child;
}

describe("a work outside the agent's process", () => {
  it("runs in a session of its own, tells its progress, and leaves only files for the owner", async () => {
    const told: number[] = [];
    const end = performTestWork(workers(), taskId, input(), { progress: ({ done }) => void told.push(done) });
    await until("progress", () => (told.length > 0 ? true : undefined));
    expect(readStarted()?.pid).not.toBe(process.pid);
    for (const name of ["order.json", "started.json", "progress.json", "log"])
      expect([name, (statSync(join(partFolder(), name)).mode & 0o777).toString(8)]).toEqual([name, "600"]);
    letEnd();
    expect(await end).toEqual({ ok: true, result: { said: "done" } });
  });

  it("returns the stored result when the work is performed again", async () => {
    letEnd();
    await performTestWork(workers(), taskId, input());
    expect(await performTestWork(workers(), taskId, input())).toEqual({ ok: true, result: { said: "done" } });
    expect(starts()).toBe(1);
  });

  it("starts once if two agents perform it at the same time", async () => {
    const both = [performTestWork(workers(), taskId, input()), performTestWork(workers(), taskId, input())];
    await hasStarted();
    letEnd();
    expect(await Promise.all(both)).toEqual([
      { ok: true, result: { said: "done" } },
      { ok: true, result: { said: "done" } },
    ]);
    expect(starts()).toBe(1);
  });

  it.each(["at once", "after the start", "after the end"])("starts once if the agent is killed %s", async (when) => {
    const killed = agent();
    await killed.ready;
    if (when !== "at once") await hasStarted();
    if (when === "after the end") {
      letEnd();
      await until("the result", () => (readFileSync(join(partFolder(), "result.json")).length > 0 ? true : undefined));
    }
    killed.kill("SIGKILL");
    await killed.gone;
    const again = performTestWork(workers(), taskId, input());
    await hasStarted();
    letEnd();
    expect(await again).toEqual({ ok: true, result: { said: "done" } });
    expect(starts()).toBe(1);
  });

  it("counts the deadline from the start of the worker process", async () => {
    const first = performTestWork(workers(), taskId, input("deaf"), { deadlineSeconds: 1 });
    await hasStarted();
    const started = readStarted();
    // A busy host may need seconds from the start of the process to this file, while the supervisor already counts.
    const late = { ...started, uptime_seconds: (started?.uptime_seconds ?? 0) + 100 };
    writeFileSync(join(partFolder(), STARTED_FILE), JSON.stringify(late));
    expect(await first).toMatchObject({ ok: false, code: "deadline_passed" });
  });

  it("reports the error of the work without a secret", async () => {
    expect(await performTestWork(workers(), taskId, input("throw"))).toMatchObject({
      ok: false,
      code: "work_failed",
      message: "the disk is on fire, password=[redacted]",
    });
  });

  it("reports a worker that was killed, and never starts the work a second time", async () => {
    expect(await performTestWork(workers(), taskId, input("crash"))).toMatchObject({ ok: false, code: "worker_lost" });
    expect(await performTestWork(workers(), taskId, input())).toMatchObject({ ok: false, code: "worker_lost" });
    expect(starts()).toBe(1);
  });

  it("ends a tool that outlives its worker", async () => {
    expect(await performTestWork(workers(), taskId, input("tool"))).toMatchObject({ code: "worker_lost" });
    const started = readStarted();
    expect(started === null ? null : aliveInSession(started)).toEqual([]);
  });

  it("ends a work that ignores SIGTERM at its deadline, also without an agent", async () => {
    const stopped = new AbortController();
    const first = performTestWork(workers(), taskId, input("deaf"), { deadlineSeconds: 1, signal: stopped.signal });
    await hasStarted();
    stopped.abort(new TaskCancelled("interrupted", "The agent stops."));
    await expect(first).rejects.toThrow("The agent stops.");
    const started = readStarted();
    await until("the end of the worker", () =>
      started !== null && aliveInSession(started).length === 0 ? true : undefined,
    );
    expect(await performTestWork(workers(), taskId, input(), { deadlineSeconds: 1 })).toMatchObject({
      ok: false,
      code: "deadline_passed",
    });
  });

  it("ends a work that reports no progress in the time for its begin", async () => {
    expect(await performTestWork(workers(), taskId, input("silent"), { firstProgressSeconds: 1 })).toMatchObject({
      ok: false,
      code: "deadline_passed",
      message: "The work did not begin within 1 s and was ended.",
    });
    const started = readStarted();
    expect(started === null ? null : aliveInSession(started)).toEqual([]);
  });

  it("ends with a cancel by the hub, and never starts if the cancel comes first", async () => {
    const cancel = new AbortController();
    const end = performTestWork(workers(), taskId, input(), { signal: cancel.signal });
    await until("the work's first line", () => (existsSync(join(folder, "starts")) ? true : undefined));
    cancel.abort(new TaskCancelled("cancelled", "Cancelled by the hub."));
    await expect(end).rejects.toThrow("Cancelled by the hub.");
    const started = readStarted();
    expect(started === null ? null : aliveInSession(started)).toEqual([]);
    taskId = newTaskId();
    await expect(performTestWork(workers(), taskId, input(), { signal: cancel.signal })).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(starts()).toBe(1);
  });

  it("does not take another process with the recorded pid for the worker", async () => {
    mkdirSync(partFolder(), { recursive: true });
    const foreign = { pid: process.pid, start_ticks: "1", boot_id: readBootId(), uptime_seconds: 0 };
    writeFileSync(join(partFolder(), STARTED_FILE), JSON.stringify(foreign));
    expect(await performTestWork(workers(), taskId, input())).toMatchObject({ ok: false, code: "deadline_passed" });
  });

  it("refuses work that may block where no systemd enforces its deadline", async () => {
    const blocking = workers().perform({
      taskId,
      part: "one",
      work: { ...TEST_WORK, mayBlock: true },
      input: input(),
      deadlineSeconds: 5,
      signal: new AbortController().signal,
      endsWith: () => true,
      progress: () => undefined,
    });
    expect(await blocking).toMatchObject({ ok: false, code: "systemd_missing" });
  });

  it("keeps the task's input until the task is forgotten, and only for this boot", async () => {
    workers().begin(taskId, { scope: "local" });
    workers().begin(taskId, { scope: "all" });
    expect(workers().inputToContinue(taskId)).toEqual({ scope: "local" });
    await workers().forgetAllBut(new Set([taskId]));
    expect(workers().inputToContinue(taskId)).toEqual({ scope: "local" });
    writeFileSync(join(folder, "work", taskId, "task.json"), JSON.stringify({ boot_id: "older", input: {} }));
    expect(workers().inputToContinue(taskId)).toBeNull();
    await workers().forgetAllBut(new Set());
    expect(() => statSync(join(folder, "work", taskId))).toThrow();
  });
});

describe("a worker's systemd unit", () => {
  it("has the name of the work, the deadline, the memory limit, and no pipe to the agent", () => {
    const launch = { folder: "/var/lib/x", name: "t-local", deadlineSeconds: 60, memoryMax: "512M" };
    const args = unitArguments(launch, TEST_PROGRAM);
    expect(args).toContain("--unit=muster-work-t-local");
    expect(args).toContain("--property=RuntimeMaxSec=60");
    expect(args).toContain("--property=MemoryMax=512M");
    expect(args).toContain("--property=LimitCORE=0");
    expect(args.slice(args.indexOf("--") + 1)).toEqual([...TEST_PROGRAM, "worker", "perform", "/var/lib/x"]);
    expect(args).not.toContain("--pipe");
    expect(args).not.toContain("--wait");
  });
});

const readBootId = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
