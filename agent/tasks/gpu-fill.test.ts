import { randomBytes, randomInt } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkAnswers } from "../../hub/gpu-memory/expected-answers.ts";
import { answersToCheck, challengeOf, evidenceOf } from "../../hub/gpu-memory/gpu-evidence.ts";
import { gpuVerdict } from "../../hub/gpu-memory/verdict.ts";
import type { TaskId } from "../../shared/ids.ts";
import { TASKS, type TaskInput } from "../../shared/tasks/index.ts";
import {
  AMD_PCI_ADDRESS,
  amdGpuUuid,
  GpuHost,
  gpuUuid,
  hasCompiler,
  PCI_ADDRESS,
} from "../../test/fakes/gpu/gpu-host.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { type Child, startChild } from "../../test/support/child.ts";
import { until } from "../../test/support/until.ts";
import { markWedged } from "../gpu/scrub-journal.ts";
import { WorkerProcess } from "../gpu-memory/exchange.ts";
import type { System } from "../system/system.ts";
import { sendSignal } from "../system/workers/processes.ts";
import { TaskCancelled } from "./cancelled.ts";
import { gpuChallenge } from "./gpu-challenge.ts";
import { gpuFill } from "./gpu-fill.ts";

const MIB = 2 ** 20;
const QUICK = { lookEveryMs: 20, endWithinMs: 20_000, tellEveryMs: 0 };
const AMD = { vendor: "amd", uuid: amdGpuUuid(0), pci_address: AMD_PCI_ADDRESS } as const;
const nvidia = (number: number) => ({ vendor: "nvidia", uuid: gpuUuid(number), pci_address: PCI_ADDRESS }) as const;

/** The time limit, in milliseconds, of a test hook that compiles a library or waits for a worker process's end. */
const HOOK_MS = 120_000;

describe.skipIf(!hasCompiler)("node.gpu_fill and node.gpu_challenge (SKIPPED without gcc)", () => {
  let host: GpuHost;
  let taskId: TaskId;
  let input: TaskInput<"node.gpu_fill">;
  let abort: AbortController;
  let steps: string[];
  let agents: Child[];
  beforeEach(() => {
    host = new GpuHost();
    taskId = newTaskId();
    abort = new AbortController();
    steps = [];
    agents = [];
    input = {
      plan: false,
      seed: randomBytes(32).toString("hex"),
      marker: null,
      gpus: [nvidia(0)],
      deadline_seconds: 100,
      hold_seconds: 100,
    };
  }, HOOK_MS);
  afterEach(async () => {
    for (const agent of agents) await agent.stop(0);
    for (const pid of workerPids()) sendSignal(pid, "SIGKILL");
    await nothingHeld();
    host.remove();
  }, HOOK_MS);

  const run = { progress: () => undefined };
  const fill = async (change: Partial<typeof input> = {}, id = taskId) => {
    const reply = await gpuFill(host.gpuSystem, QUICK)(
      { ...input, ...change },
      {
        taskId: id,
        signal: abort.signal,
        progress: ({ gpus }) => void steps.push(...gpus.map(({ step }) => step)),
      },
    );
    if (reply.ok) TASKS["node.gpu_fill"].result.parse(reply.result);
    return reply;
  };
  const challenge = async (
    gpus: { uuid: string; blocks: number[] }[],
    more: { nonce?: string; plan?: boolean } = {},
    system: System = host.gpuSystem,
  ) => {
    const asked = { plan: false, fill_task_id: taskId, nonce: "0b".repeat(16), gpus, deadline_seconds: 60, ...more };
    const reply = await gpuChallenge(system, 20)(asked, { taskId: newTaskId(), signal: abort.signal, ...run });
    if (!reply.ok) throw new Error(reply.message);
    return TASKS["node.gpu_challenge"].result.parse(reply.result);
  };
  const installAmd = () => {
    host.installHip("libamdhip64.so.6");
    host.installHip("libhiprtc.so.6");
    host.amdGpu(0, AMD.pci_address);
    host.control(`memory ${12 * MIB}\nvram sys/bus/pci/devices/${AMD.pci_address}/mem_info_vram_used`, AMD.uuid);
  };
  const exchange = (uuid = gpuUuid(0)) => `var/lib/muster/agent/gpu-memory/${taskId}/${uuid}`;
  const workerPid = (uuid = gpuUuid(0)) =>
    until("the worker", () =>
      host.has(`${exchange(uuid)}/worker.json`)
        ? WorkerProcess.parse(JSON.parse(host.read(`${exchange(uuid)}/worker.json`))).pid
        : undefined,
    );
  const workerPids = (): number[] =>
    host.has("gpu")
      ? readdirSync(host.path("gpu")).flatMap((name) => {
          const pid = Number(/^held-(\d+)$/.exec(name)?.[1] ?? 0);
          return pid > 0 && host.isAlive(pid) ? [pid] : [];
        })
      : [];
  const nothingHeld = () => until("nothing is held", () => (host.heldBytes() === 0 ? true : undefined));
  const starts = () => host.calls().filter((call) => call.startsWith("systemd-run")).length;

  it("overwrites each GPU, answers the hub's challenge, and ends with verified, zeroed and free memory", async () => {
    installAmd();
    const gpus = [nvidia(0), AMD, nvidia(2)];
    const filled = await fill({ gpus });
    if (!filled.ok) throw new Error(filled.message);
    expect(filled.result.steps.map(({ target, outcome }) => [target, outcome])).toEqual([
      [gpuUuid(0), "ok"],
      [AMD.uuid, "ok"],
      [gpuUuid(2), "ok"],
    ]);
    expect(filled.result.faults).toEqual([]);
    expect(host.heldBytes()).toBe(3 * 12 * MIB);
    const fillOf = { taskId, input: { ...input, gpus }, result: filled.result };
    const asked = challengeOf(fillOf, randomBytes(16).toString("hex"), randomInt, 60) ?? expect.fail("no challenge");
    const challenged = { input: asked, result: await challenge(asked.gpus, { nonce: asked.nonce }) };
    expect(challenged.result.steps.map(({ outcome }) => outcome)).toEqual(["ok", "ok", "ok"]);
    const checked = checkAnswers(answersToCheck(fillOf, challenged));
    const expected = gpus.map(({ uuid, pci_address: address }) => ({ uuid, address, bytes: null, isReset: true }));
    const sizes = Object.fromEntries(gpus.map(({ pci_address }) => [pci_address, { exact: 15 * MIB }]));
    const verdicts = evidenceOf(expected, fillOf, challenged, checked, sizes).map(gpuVerdict);
    expect(verdicts.map(({ level, share }) => [level, share])).toEqual([
      ["challenge_verified", 10 / 15],
      ["challenge_verified", 10 / 16],
      ["challenge_verified", 10 / 15],
    ]);
    await nothingHeld();
  });

  it.each([
    ["clears", "", 0],
    ["does not clear", "dirty 171", (10 * MIB) / 16],
  ])("shows by a marker that the driver %s freed memory", async (_does, control, units) => {
    host.control(`memory ${12 * MIB}\n${control}`);
    expect(await fill({ marker: 0xabababab })).toMatchObject({
      result: {
        steps: [{ outcome: "ok", evidence: { marked_bytes: 10 * MIB, prefill_marker_units: units } }],
        commitments: [{ prefill_marker_units: units, mismatched_blocks: 0 }],
      },
    });
    expect(starts()).toBe(2);
    expect(host.heldBytes()).toBe(12 * MIB);
  });

  it("does not overwrite a GPU whose memory could not be marked", async () => {
    host.control(`memory ${12 * MIB}\nfail cuMemsetD32Async 719`);
    expect(await fill({ marker: 1 })).toMatchObject({
      result: { commitments: [], faults: [{ fault: "memory_fault" }] },
    });
    expect(starts()).toBe(1);
  });

  it("starts no worker after the driver has hung, until the next boot", async () => {
    await markWedged(host.gpuSystem, new Error("nvidia-smi did not answer"));
    expect(await fill()).toMatchObject({
      ok: true,
      result: {
        commitments: [],
        faults: [{ fault: "driver_wedged" }],
        steps: [{ message: "nvidia-smi did not answer" }],
      },
    });
    expect(starts()).toBe(0);
    host.write("proc/sys/kernel/random/boot_id", "5f0c1a52-0000-4000-8000-000000000009\n");
    expect(await fill({}, newTaskId())).toMatchObject({ ok: true, result: { faults: [] } });
  });

  it("with plan, changes nothing and says what it would do", async () => {
    const planned = await fill({ plan: true, gpus: [nvidia(0), AMD] });
    expect(planned).toMatchObject({ ok: true, result: { commitments: [], faults: [] } });
    expect(planned.ok && planned.result.steps.map(({ outcome }) => outcome)).toEqual(["planned", "planned"]);
    const { steps, gpus } = await challenge([{ uuid: gpuUuid(0), blocks: [1] }], { plan: true });
    expect([steps[0]?.outcome, gpus]).toEqual(["planned", []]);
    expect([starts(), host.has("var/lib/muster/agent/gpu-memory")]).toEqual([0, false]);
  });

  it("tells what the driver and its package say about themselves", async () => {
    host.write(
      "proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module  580.126\nGCC version: 13\n",
    );
    host.write("proc/driver/nvidia/params", 'ResmanDebugLevel: 1\nRegistryDwords: "RMDisableScrubOnFree=1"\n');
    host.tool(
      "dpkg",
      `case $1 in --search) echo "libnvidia-compute-580:amd64: $2" ;; --verify) echo "??5??????   /usr/lib/x86_64-linux-gnu/libcuda.so.580.126"; exit 2 ;; esac`,
    );
    expect(await fill({ plan: true })).toMatchObject({
      result: {
        driver: {
          version: expect.stringContaining("580.126"),
          registry: "RMDisableScrubOnFree=1",
          registry_per_device: "",
        },
        library: { package: "libnvidia-compute-580:amd64", is_unchanged: false },
      },
    });
    host.tool("dpkg", `[ "$1" = --verify ] || echo "libnvidia-compute-580:amd64: $2"`);
    expect(await fill({ plan: true })).toMatchObject({ result: { library: { is_unchanged: true } } });
    host.tool("dpkg", "exit 1");
    expect(await fill({ plan: true })).toMatchObject({ result: { library: { package: null, is_unchanged: null } } });
    const amd = { plan: true, gpus: [AMD] };
    expect(await fill(amd)).toMatchObject({ result: { driver: null, library: { package: null } } });
    host.write("opt/rocm-6.3.1/lib/libamdhip64.so.6", "");
    host.write("sys/module/amdgpu/version", "6.10.5\n");
    host.write("proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
    host.tool("dpkg", `[ "$1" = --verify ] || echo "hip-runtime-amd: $2"`);
    expect(await fill(amd)).toMatchObject({
      result: {
        driver: { version: "amdgpu 6.10.5, Linux 6.8.0-60-generic", registry: "" },
        library: { package: "hip-runtime-amd", is_unchanged: true },
      },
    });
    expect(host.calls().some((call) => call.endsWith("--search /opt/rocm-6.3.1/lib/libamdhip64.so.6"))).toBe(true);
  });

  it("keeps the GPUs apart: a fault of one GPU does not touch the others", async () => {
    host.control("memory 8388608\nfail cuLaunchKernel 700 3", gpuUuid(1));
    host.control("memory 8388608\nflip 70000", gpuUuid(2));
    const reply = await fill({ gpus: [nvidia(0), nvidia(1), nvidia(2)] });
    expect(reply).toMatchObject({
      ok: true,
      result: {
        steps: [{ outcome: "ok" }, { outcome: "failed" }, { outcome: "failed" }],
        commitments: [{ uuid: gpuUuid(0) }, { uuid: gpuUuid(2), mismatched_blocks: 1 }],
        faults: [
          { target: gpuUuid(1), fault: "memory_fault" },
          { target: gpuUuid(2), fault: "memory_mismatch" },
        ],
      },
    });
  });

  it.each([
    ["while it opens the driver", "hang cuInit"],
    ["while it takes memory", "hang cuMemAlloc_v2 3"],
    ["while it reads the memory", "hang cuLaunchKernel 2"],
    ["while it fills", "hang cuLaunchKernel 8"],
    ["while it compares", "hang cuLaunchKernel 14"],
  ])("reports a worker that is killed %s, and nothing stays held", async (_when, control) => {
    host.control(`memory ${12 * MIB}\n${control}`);
    const filling = fill();
    const pid = await workerPid();
    await until("the call that hangs", () => (host.has(`gpu/hangs-${pid}`) ? true : undefined));
    process.kill(pid, "SIGKILL");
    expect(await filling).toMatchObject({
      ok: true,
      result: { steps: [{ outcome: "failed" }], commitments: [], faults: [{ fault: "worker_lost" }] },
    });
    await nothingHeld();
  });

  it.each([
    ["while it holds", "", "not_answered"],
    ["while it zeroes", "hang cuMemsetD32Async 2", "zeroing"],
  ])("reports a worker that is killed %s, and nothing stays held", async (_when, control, kind) => {
    host.control(`memory ${12 * MIB}\n${control}`);
    await fill();
    const pid = await workerPid();
    if (kind === "not_answered") process.kill(pid, "SIGKILL");
    const asking = challenge([{ uuid: gpuUuid(0), blocks: [1, 2] }]);
    if (kind === "zeroing") {
      await until("the call that hangs", () => (host.has(`gpu/hangs-${pid}`) ? true : undefined));
      process.kill(pid, "SIGKILL");
    }
    const { gpus, steps } = await asking;
    expect(gpus).toMatchObject([{ release: null, fault: "worker_lost" }]);
    expect(gpus[0]?.answers.length).toBe(kind === "zeroing" ? 2 : 0);
    expect(steps).toMatchObject([{ outcome: "failed" }]);
    await nothingHeld();
  });

  it.each([
    ["hang cuInit", null],
    ["hang cuLaunchKernel 8", null],
    ["", null],
    ["hang cuLaunchKernel 8", 7],
    ["", 7],
  ])(
    "goes on after kill -9 of the agent with the same worker, at '%s' and with the marker %j",
    async (control, marker) => {
      input = { ...input, marker };
      host.control(`memory ${12 * MIB}\n${control}`);
      const agent = startChild({
        name: "agent",
        script: join(import.meta.dirname, "../../test/support/gpu-agent.ts"),
        args: [host.root, taskId, JSON.stringify(input)],
        logFile: host.path("agent.log"),
      });
      agents.push(agent);
      const pid = await workerPid();
      const reached = control === "" ? `${exchange()}/commitment.json` : `gpu/hangs-${pid}`;
      await until("the phase", () => (host.has(reached) ? true : undefined));
      agent.kill("SIGKILL");
      await agent.gone;
      host.control(`memory ${12 * MIB}`);
      expect(await fill()).toMatchObject({ ok: true, result: { steps: [{ outcome: "ok" }] } });
      expect([starts(), await workerPid()]).toEqual([marker === null ? 1 : 2, pid]);
      const { gpus } = await challenge([{ uuid: gpuUuid(0), blocks: [3] }]);
      expect(gpus).toMatchObject([{ fault: null, release: { nonzero_units: 0 } }]);
    },
  );

  it("ends the workers of an earlier task before it takes memory", async () => {
    await fill();
    const earlier = await workerPid();
    taskId = newTaskId();
    expect(await fill({ seed: "cd".repeat(32) })).toMatchObject({ result: { steps: [{ outcome: "ok" }] } });
    expect(host.isAlive(earlier)).toBe(false);
    expect(host.heldBytes()).toBe(12 * MIB);
  });

  it("does not start beside an earlier worker that does not end", async () => {
    await fill();
    const earlier = await workerPid();
    process.kill(earlier, "SIGSTOP");
    taskId = newTaskId();
    const impatient = { ...QUICK, endWithinMs: 100 };
    const reply = await gpuFill(host.gpuSystem, impatient)(input, { taskId, signal: abort.signal, ...run });
    expect(reply).toMatchObject({ ok: false, error: "earlier_worker_remains" });
    expect(reply.ok ? "" : reply.message).toContain(String(earlier));
    expect(starts()).toBe(1);
  });

  it("gives up at its deadline when the driver does not answer, and ends the worker", async () => {
    host.control("hang cuCtxSynchronize 1");
    const reply = await fill({ deadline_seconds: 3 as never });
    expect(reply).toMatchObject({ ok: true, result: { faults: [{ fault: "deadline_passed" }] } });
    await nothingHeld();
  });

  it("ends the workers when the hub cancels", async () => {
    host.control(`memory ${12 * MIB}\nslow 50000`);
    const filling = fill();
    await workerPid();
    abort.abort(new TaskCancelled("cancelled", "Cancelled by the hub."));
    await expect(filling).rejects.toThrow("Cancelled by the hub.");
    await nothingHeld();
  });

  it("refuses the work on a host without systemd", async () => {
    const bare = host.systemWithoutSystemd();
    const reply = await gpuFill(bare, QUICK)(input, { taskId, signal: abort.signal, ...run });
    expect(reply).toMatchObject({ ok: true, result: { faults: [{ fault: "systemd_missing" }] } });
  });

  it("repeats its answers to the same challenge, and answers no other", async () => {
    await fill();
    const asked = [{ uuid: gpuUuid(0), blocks: [0, 159] }];
    const first = await challenge(asked);
    expect(await challenge(asked)).toEqual(first);
    expect((await challenge(asked, { nonce: "0c".repeat(16) })).gpus).toMatchObject([
      { fault: "not_answered", answers: [] },
    ]);
    expect((await challenge([{ uuid: gpuUuid(7), blocks: [0] }])).gpus).toMatchObject([{ fault: "not_committed" }]);
  });

  it("sees an answer that comes, with the release after it, while it reads the worker's files", async () => {
    await fill();
    const pid = await workerPid();
    process.kill(pid, "SIGSTOP");
    const read: System["read"] = async (path) => {
      const text = await host.gpuSystem.read(path);
      if (!path.endsWith("/answer.json") || text !== null) return text;
      process.kill(pid, "SIGCONT");
      await until("the release", () => (host.has(`${exchange()}/release.json`) ? true : undefined));
      return text;
    };
    const { gpus } = await challenge([{ uuid: gpuUuid(0), blocks: [3] }], {}, { ...host.gpuSystem, read });
    expect(gpus).toMatchObject([{ fault: null, release: { nonzero_units: 0 } }]);
  });

  it("says so when the hold time had passed before the challenge came", async () => {
    await fill({ hold_seconds: 1 as never });
    await until("the release", () => (host.has(`${exchange()}/release.json`) ? true : undefined));
    expect((await challenge([{ uuid: gpuUuid(0), blocks: [0] }])).gpus).toMatchObject([
      { fault: "not_answered", release: { nonzero_units: 0 } },
    ]);
  });

  it("reports its progress", async () => {
    host.control(`memory ${12 * MIB}\nhang cuLaunchKernel 8`);
    const filling = fill();
    await until("progress", () => (steps.length > 0 ? true : undefined));
    host.control(`memory ${12 * MIB}`);
    await filling;
    expect(["open", "allocate", "scan_before", "fill"]).toContain(steps[0]);
  });
});
