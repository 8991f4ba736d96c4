import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { gpuScrub as spec } from "../../shared/tasks/gpu-scrub.ts";
import { NvidiaHost, PCI } from "../../test/fakes/gpu/nvidia-host.ts";
import { KEEP_COMPILE_CACHE, quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { until } from "../../test/support/until.ts";
import { systemAt } from "../system/system.ts";
import { TaskCancelled } from "./cancelled.ts";
import { gpuScrub } from "./gpu-scrub.ts";

const PROGRAM = [process.execPath, join(import.meta.dirname, "../main.ts")];
const SERVICES = ["nvidia-persistenced", "nvidia-dcgm"];
const SYSTEMD_RUN = `${KEEP_COMPILE_CACHE}
while [ "$1" != -- ]; do echo "$1" >> "$MUSTER_ROOT/state/properties"; shift; done; shift
echo started >> "$MUSTER_ROOT/state/workers"
setsid "$@" < /dev/null >> "$MUSTER_ROOT/state/worker-log" 2>&1 &`;

let host: NvidiaHost;
let abort: AbortController;
let told: string[];
const taskId = newTaskId();
beforeEach(() => {
  host = new NvidiaHost({ gpus: 1, services: SERVICES });
  host.write("run/systemd/system/.keep", "");
  host.write("usr/bin/systemd-run", `#!/bin/sh\n${SYSTEMD_RUN}\n`, 0o755);
  abort = new AbortController();
  told = [];
});
afterEach(() => host.remove());

const scrub = () =>
  gpuScrub(systemAt(host.root, quietAgentLog, PROGRAM))(
    spec.input.parse({ vendor: "nvidia", expected_gpus: 1, rungs: ["reset"], kill_holders: true, plan: false }),
    { taskId, signal: abort.signal, progress: ({ step }) => void told.push(step) },
  );
const workers = (): number => host.read("state/workers").trimEnd().split("\n").length;

describe("node.gpu_scrub", () => {
  it("cleans the GPUs in a unit of its own, and a restarted agent finds the result", async () => {
    const reply = await scrub();
    if (!reply.ok) throw new Error(`${reply.message} ${host.read("state/worker-log")}`);
    const { steps, needs } = spec.result.parse(reply.result);
    expect(steps.map(({ outcome }) => outcome)).toEqual(["ok", "ok", "ok", "ok", "ok", "ok"]);
    expect([needs, steps.at(-1)?.target]).toEqual(["none", PCI(0)]);
    expect(host.read("state/properties")).toMatch(/RuntimeMaxSec=3600\n(.*\n)*.*MemoryMax=512M\n/);
    const ticks = host.ticks();
    expect(await scrub()).toEqual(reply);
    expect([host.ticks(), workers()]).toEqual([ticks, 1]);
  });

  it("starts the services again if the cleaning is killed", async () => {
    // The eighth call of a simulated tool unloads a kernel module, after the GPU cleaning has stopped all services.
    host.state("kill-at", "after 8");
    expect(await scrub()).toMatchObject({
      ok: false,
      error: "work_lost",
      message: expect.stringContaining("All that was stopped runs again."),
    });
    expect(host.actions()).toContain("stop nvidia-dcgm.service");
    expect([host.running(), host.modules()]).toEqual([SERVICES, ["nvidia", "nvidia_drm", "nvidia_modeset"]]);
    expect(workers()).toBe(2);
  });

  it("starts the services again if the hub cancels the task", async () => {
    host.state("hang/reset");
    const reply = scrub();
    await until("the reset", () => (host.actions().includes("rmmod nvidia_modeset") ? true : undefined));
    await until("progress", () => (told.length > 0 ? true : undefined));
    abort.abort(new TaskCancelled("cancelled", "cancelled"));
    await expect(reply).rejects.toThrow("cancelled");
    expect(host.actions()).toContain("stop nvidia-dcgm.service");
    expect(host.running()).toEqual(SERVICES);
  });

  it("changes nothing on a host without systemd, which would enforce the deadline", async () => {
    await host.system.removeTree("/run/systemd");
    expect(await scrub()).toMatchObject({ ok: false, error: "systemd_missing" });
    expect(host.ticks()).toBe(0);
  });
});
