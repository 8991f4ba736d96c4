import { randomBytes, randomUUID } from "node:crypto";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GpuFault } from "../../../shared/gpu-faults.ts";
import { AMD_PCI_ADDRESS, amdGpuUuid, GpuHost, hasCompiler } from "../../../test/fakes/gpu/gpu-host.ts";
import { until } from "../../../test/support/until.ts";
import { clearMemory } from "../../gpu-memory/clear.ts";
import { outcomeOfClear } from "../../gpu-memory/clear-outcome.ts";
import type { OverwriteOrder, OverwriteResult } from "../../gpu-memory/exchange.ts";
import { asGpuFault, GpuFaultError } from "../../gpu-memory/faults.ts";
import { OVERWRITE_WORK } from "../../gpu-memory/overwrite-work.ts";
import { renderNodeAt } from "./amd-device-files.ts";
import { openClearing } from "./clear-device.ts";

const UUID = amdGpuUuid(0);
const MIB = 2 ** 20;
const DEVICE = `sys/bus/pci/devices/${AMD_PCI_ADDRESS}`;

/** The time limit of a test hook, which compiles the stand-in for the C library. */
const HOOK_MS = 120_000;

/** The stand-in for the C library answers the requests of a DRM device file with real memory, which is full of 0xab before the driver clears it. */
describe.skipIf(!hasCompiler)("the worker of an AMD GPU without HIP (SKIPPED without gcc)", () => {
  let host: GpuHost;
  let order: OverwriteOrder;
  beforeEach(() => {
    host = new GpuHost();
    // The stand-in for the C library finds its orders and its files below this test's folder.
    process.env["MUSTER_ROOT"] = host.root;
    host.amdGpu(0, AMD_PCI_ADDRESS);
    host.installDrm(AMD_PCI_ADDRESS);
    control();
    order = {
      fill_task_id: randomUUID(),
      folder: host.path("exchange"),
      gpu: 0,
      vendor: "amd",
      uuid: UUID,
      pci_address: AMD_PCI_ADDRESS,
      seed: randomBytes(32).toString("hex"),
      marker: null,
      pass: "overwrite",
      hold_seconds: 60,
    };
  }, HOOK_MS);
  afterEach(() => {
    delete process.env["MUSTER_ROOT"];
    host.remove();
  });

  const control = (more = "") =>
    host.control(
      `memory ${12 * MIB}\ndirty 171\nvram ${DEVICE}/mem_info_vram_used\ngtt ${DEVICE}/mem_info_gtt_used\n${more}`,
    );
  const perform = (deadlineSeconds = 120) =>
    host.gpuSystem.workers.perform({
      taskId: order.fill_task_id,
      part: "gpu-0",
      work: OVERWRITE_WORK,
      input: order,
      deadlineSeconds,
      signal: new AbortController().signal,
      endsWith: () => true,
      progress: () => undefined,
    });
  /** The test clears GPU memory in its own process, which saves the start of a worker process. */
  const ended = async (): Promise<OverwriteResult> => {
    const renderNode = renderNodeAt(host.root, AMD_PCI_ADDRESS) ?? expect.fail("no device file");
    try {
      const paths = { root: host.root, c: host.path("usr/lib/x86_64-linux-gnu/libc.so.6"), renderNode };
      return await clearMemory(order, openClearing(order, paths), { throwIfStopped, progress: () => undefined });
    } catch (error) {
      const fault = asGpuFault(error, UUID);
      if (!(fault instanceof GpuFaultError)) throw error;
      return { end: "fault", fault: fault.fault, message: fault.message };
    }
  };
  const cleared = async () => {
    const result = await ended();
    return result.end === "cleared" ? result.clear : expect.fail(JSON.stringify(result));
  };

  it("holds all memory that the driver gives, reads zeros in it, and gives it back", async () => {
    const end = await perform();
    const clear = end.ok && end.result.end === "cleared" ? end.result.clear : expect.fail(JSON.stringify(end));
    expect(clear).toMatchObject({
      uuid: UUID,
      pci_address: AMD_PCI_ADDRESS,
      // The test's GPU has 16 MiB of memory, of which the driver gives 12 MiB. The stand-in for the driver puts each buffer beyond the 12 MiB into
      // the host's memory.
      cleared_bytes: 12 * MIB,
      total_bytes: 16 * MIB,
      bar_bytes: 16 * MIB,
      sampled_bytes: 12 * MIB,
      nonzero_units: 0,
    });
    expect(outcomeOfClear(clear).fault).toBeNull();
    expect(host.heldBytes()).toBe(0);
    expect([host.read(`${DEVICE}/mem_info_vram_used`), host.read(`${DEVICE}/mem_info_gtt_used`)]).toEqual([
      "0\n",
      "0\n",
    ]);
  });

  it("counts only what the driver gave before it refused", async () => {
    // The first buffer is larger than the memory that the driver gives, so the worker process closes this buffer.
    control("fail gemCreate 12 4");
    expect(await cleared()).toMatchObject({ cleared_bytes: 6 * MIB, sampled_bytes: 6 * MIB, nonzero_units: 0 });
  });

  it.each<[string, string, number]>([
    ["a single bit is set", "flip 1000000", 1],
    ["the driver does not clear", "uncleared", (12 * MIB) / 16],
    ["the GPU has left the bus", "lost", (12 * MIB) / 16],
  ])("finds memory that is not zero when %s", async (_when, said, units) => {
    control(said);
    const clear = await cleared();
    expect(clear).toMatchObject({ cleared_bytes: 12 * MIB, nonzero_units: units });
    expect(outcomeOfClear(clear)).toMatchObject({ fault: "not_cleared", message: expect.stringContaining(UUID) });
  });

  it.each([
    ["is small", `${MIB}\n`, MIB],
    ["is unknown", "", null],
  ])("reads nothing when the host's window into GPU memory %s, and says so", async (_how, text, bytes) => {
    host.write(`${DEVICE}/mem_info_vis_vram_total`, text);
    const clear = await cleared();
    expect(clear).toMatchObject({ cleared_bytes: 12 * MIB, bar_bytes: bytes, sampled_bytes: 0 });
    expect(outcomeOfClear(clear).fault).toBe("bar_too_small");
  });

  it.each<[string, GpuFault]>([
    ["fail gemCreate 19", "gpu_missing"],
    ["fail gemCreate 12", "gpu_busy"],
    ["fail gemCreate 22 3", "driver_refused"],
    ["fail gemWaitIdle 5 1", "driver_refused"],
    ["fail mmap 1", "driver_refused"],
    ["busy", "driver_refused"],
    ["keeps-gtt", "gpu_busy"],
    ["evicts", "gpu_busy"],
  ])("names the fault when the driver says: %s", async (said, fault) => {
    control(said);
    expect(await ended()).toMatchObject({ end: "fault", fault, message: expect.stringContaining(UUID) });
  });

  it.each<[string, GpuFault, () => void]>([
    ["has another GPU at the place", "gpu_mismatch", () => host.amdGpu(0, AMD_PCI_ADDRESS, { unique_id: 1 })],
    ["divides the memory", "gpu_mismatch", () => host.write(`${DEVICE}/current_memory_partition`, "NPS4\n")],
    ["does not count", "counter_unreadable", () => host.write(`${DEVICE}/mem_info_gtt_used`, "none\n")],
    [
      "has another device under the name",
      "gpu_mismatch",
      () => host.write(`${DEVICE}/drm/renderD128/dev`, "226:128\n"),
    ],
    [
      "has a file in place of the device",
      "gpu_mismatch",
      () => {
        rmSync(host.path("dev/dri/renderD128"));
        writeFileSync(host.path("dev/dri/renderD128"), "");
      },
    ],
  ])("creates no buffer when the kernel %s", async (_when, fault, act) => {
    act();
    expect(await ended()).toMatchObject({ end: "fault", fault });
    expect(readdirSync(host.path("gpu"))).toEqual(["control"]);
  });

  it("writes no marker, and needs the device file of the GPU", async () => {
    order = { ...order, marker: 7, pass: "mark" };
    expect(await perform()).toMatchObject({ result: { end: "fault", fault: "unsupported" } });
    rmSync(host.path(`${DEVICE}/drm`), { recursive: true });
    order = { ...order, fill_task_id: randomUUID(), marker: null, pass: "overwrite" };
    expect(await perform()).toMatchObject({ result: { end: "fault", fault: "driver_missing" } });
  });

  it("gives way to HIP where HIP is installed", async () => {
    host.installHip("libamdhip64.so.6");
    control("fail hipInit 100");
    expect(await perform()).toMatchObject({
      result: { fault: "gpu_missing", message: expect.stringContaining("hipInit") },
    });
  });

  it("is ended at its deadline when a call does not return", async () => {
    control("hang gemCreate 2");
    expect(await perform(6)).toMatchObject({ ok: false, code: "deadline_passed" });
    expect(host.heldBytes()).toBe(0);
  });

  it("leaves nothing held when it is killed while the GPU clears", async () => {
    control("hang gemWaitIdle 1");
    const ending = perform();
    const pid = await until(
      "the call that hangs",
      () => readdirSync(host.path("gpu")).flatMap((name) => Number(/^hangs-(\d+)$/.exec(name)?.[1] ?? 0) || [])[0],
    );
    process.kill(pid, "SIGKILL");
    expect(await ending).toMatchObject({ ok: false, code: "worker_lost" });
    expect(host.heldBytes()).toBe(0);
  });
});

const throwIfStopped = (): void => undefined;
