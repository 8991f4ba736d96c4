import { randomBytes, randomUUID } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkAnswers } from "../../../hub/gpu-memory/expected-answers.ts";
import type { GpuFault } from "../../../shared/gpu-faults.ts";
import { GpuCommitment, sampleBlocksIn } from "../../../shared/gpu-memory.ts";
import { AMD_PCI_ADDRESS, amdGpuUuid, GpuHost, hasCompiler, ROCM_FOLDER } from "../../../test/fakes/gpu/gpu-host.ts";
import { until } from "../../../test/support/until.ts";
import {
  ANSWER_FILE,
  CHALLENGE_FILE,
  COMMITMENT_FILE,
  GpuAnswers,
  type OverwriteOrder,
} from "../../gpu-memory/exchange.ts";
import { OVERWRITE_WORK } from "../../gpu-memory/overwrite-work.ts";

const UUID = amdGpuUuid(0);
const MIB = 2 ** 20;
const NONCE = randomBytes(16).toString("hex");
const USED = `vram sys/bus/pci/devices/${AMD_PCI_ADDRESS}/mem_info_vram_used`;

const HOOK_MS = 120_000;

/**
 * In the tests, gcc compiles the text of the agent's GPU kernels in place of AMD's compiler, and runs them over real memory. Because the hub computes
 * the stream with node:crypto, the test checks the arithmetic of the GPU kernels' text.
 */
describe.skipIf(!hasCompiler)("the worker of an AMD GPU (SKIPPED without gcc, which builds AMD's libraries)", () => {
  let host: GpuHost;
  let order: OverwriteOrder;
  let end: unknown;
  beforeEach(() => {
    host = new GpuHost();
    host.installHip("libamdhip64.so.6");
    host.installHip("libhiprtc.so.6");
    host.amdGpu(0, AMD_PCI_ADDRESS);
    control();
    end = null;
    order = {
      fill_task_id: randomUUID(),
      folder: host.path("exchange"),
      gpu: 5,
      vendor: "amd",
      uuid: UUID,
      pci_address: AMD_PCI_ADDRESS,
      seed: randomBytes(32).toString("hex"),
      marker: null,
      pass: "overwrite",
      hold_seconds: 60,
    };
  }, HOOK_MS);
  afterEach(async () => {
    host.write("exchange/end.json", "{}");
    await until("no memory is held", () => (host.heldBytes() === 0 ? true : undefined));
    host.remove();
  }, HOOK_MS);

  const control = (more = "", memory = 8) => host.control(`memory ${memory * MIB}\n${USED}\n${more}`);
  const start = async (deadlineSeconds = 120) => {
    const ended = await host.gpuSystem.workers.perform({
      taskId: order.fill_task_id,
      part: "gpu-5",
      work: OVERWRITE_WORK,
      input: order,
      deadlineSeconds,
      signal: new AbortController().signal,
      endsWith: () => true,
      progress: () => undefined,
    });
    end = ended;
    return ended;
  };
  const commitment = () =>
    until("the commitment", () => {
      if (host.has(`exchange/${COMMITMENT_FILE}`))
        return GpuCommitment.parse(JSON.parse(host.read(`exchange/${COMMITMENT_FILE}`)));
      if (end !== null) throw new Error(`the worker ended before it committed: ${JSON.stringify(end)}`);
      return undefined;
    });
  const challenge = (blocks: number[]) =>
    host.write(`exchange/${CHALLENGE_FILE}`, JSON.stringify({ nonce: NONCE, blocks }));
  const correct = (blocks: number[]): number => {
    const { answers } = GpuAnswers.parse(JSON.parse(host.read(`exchange/${ANSWER_FILE}`)));
    const gpus = [{ gpu: order.gpu, uuid: UUID, blocks, answers }];
    const [checked] = checkAnswers({ fill_task_id: order.fill_task_id, seed: order.seed, nonce: NONCE, gpus });
    return checked?.correct ?? Number.NaN;
  };

  it("counts what was there, fills with kernels that hiprtc compiles, answers the hub, and leaves zeros", async () => {
    control("dirty 171");
    order = { ...order, marker: 0xabababab };
    const ending = start();
    const committed = await commitment();
    const units = (6 * MIB) / 16;
    expect(committed).toMatchObject({
      uuid: UUID,
      pci_address: AMD_PCI_ADDRESS,
      cuda_version: null,
      hip_version: 60_342_134,
      // The worker process keeps 2 MiB of GPU memory for the results of its kernels, so 6 of 8 MiB are left.
      allocated_bytes: 6 * MIB,
      visible_bytes: 8 * MIB,
      total_bytes: 16 * MIB,
      reserved_bytes: null,
      prefill_nonzero_units: units,
      prefill_marker_units: units,
      kernels_error: null,
      mismatched_blocks: 0,
      first_mismatch: null,
    });
    const blocks = [0, 1, 31, 32, 64, sampleBlocksIn(committed.allocated_bytes) - 1];
    challenge(blocks);
    expect(await ending).toMatchObject({
      ok: true,
      result: { end: "answered", release: { zeroed_bytes: 6 * MIB, nonzero_units: 0 } },
    });
    expect(correct(blocks)).toBe(blocks.length);
  });

  it("finds a flipped bit on the device with its place, and asks nothing more of that memory", async () => {
    control(`flip ${5 * 65_536 + 1_000}`);
    const ending = start();
    expect(await commitment()).toMatchObject({
      mismatched_blocks: 1,
      first_mismatch: Math.floor((5 * 65_536 + 1_000) / 64) * 64,
    });
    expect(await ending).toMatchObject({ ok: true, result: { end: "released" } });
  });

  it.each<[string, (file: string) => void, string]>([
    [
      "the compiler refuses the kernels",
      () => control("fail hiprtcCompileProgram 6\ndirty 171", 40),
      "unknown target CPU",
    ],
    ["the compiler library is missing", (file) => host.write(file, "no library"), "cannot be loaded"],
  ])("fills and compares by copies when %s", async (_when, act, says) => {
    act(`${ROCM_FOLDER}/libhiprtc.so.6`);
    const ending = start();
    const committed = await commitment();
    expect(committed).toMatchObject({ kernels_error: expect.stringContaining(says), mismatched_blocks: 0 });
    const blocks = [0, sampleBlocksIn(committed.allocated_bytes) - 1];
    challenge(blocks);
    expect(await ending).toMatchObject({ result: { end: "answered", release: { nonzero_units: 0 } } });
    expect(correct(blocks)).toBe(blocks.length);
  });

  it.each<[string, GpuFault]>([
    ["fail hipInit 100", "gpu_missing"],
    ["fail hipInit 35", "driver_mismatch"],
    ["fail hipMalloc 2", "gpu_busy"],
    ["fail hipMalloc 2 1", "gpu_busy"],
    ["spills", "gpu_busy"],
    ["fail hipModuleLaunchKernel 719 4", "memory_fault"],
    ["fail hipDeviceSynchronize 700 2", "memory_fault"],
    ["fail hipMemcpyDtoH 214 3", "memory_fault"],
    ["fail hipDeviceSynchronize 999 2", "driver_refused"],
    ["visible 0", "gpu_missing"],
    ["pci 0000:c6:00.0", "gpu_mismatch"],
  ])("names the fault when the driver says: %s", async (said, fault) => {
    control(said);
    const ended = await start();
    expect(ended).toMatchObject({ ok: true, result: { end: "fault", fault } });
    expect(ended.ok && ended.result.end === "fault" ? ended.result.message : "").toContain(UUID);
  });

  it.each<[string, GpuFault, () => void]>([
    ["has no GPU at the place", "gpu_missing", () => host.amdGpu(0, "0000:c6:00.0")],
    ["has another GPU at the place", "gpu_mismatch", () => host.amdGpu(0, AMD_PCI_ADDRESS, { unique_id: 1 })],
    [
      "divides the GPU into partitions",
      "gpu_mismatch",
      () => {
        host.amdGpu(1, "0000:c1:00.1");
        host.amdGpu(0, AMD_PCI_ADDRESS);
      },
    ],
  ])("touches no memory when the kernel %s", async (_when, fault, act) => {
    act();
    expect(await start()).toMatchObject({ ok: true, result: { end: "fault", fault } });
    expect(readdirSync(host.path("gpu")).filter((name) => name.startsWith("held-"))).toEqual([]);
  });

  it("names a missing library and a missing call", async () => {
    host.installHip("libamdhip64.so.6", "hipMemsetD32");
    expect(await start()).toMatchObject({
      result: { fault: "driver_too_old", message: expect.stringContaining("hipMemsetD32") },
    });
    order = { ...order, fill_task_id: randomUUID() };
    rmSync(host.path(ROCM_FOLDER), { recursive: true });
    expect(await start()).toMatchObject({
      result: { fault: "driver_missing", message: expect.stringContaining("libamdhip64.so") },
    });
  });

  it.each(["hang hipDeviceSynchronize 1", "hang hiprtcCompileProgram"])(
    "is ended at its deadline when a call does not return: %s",
    async (said) => {
      control(said);
      expect(await start(2)).toMatchObject({ ok: false, code: "deadline_passed" });
      expect(host.heldBytes()).toBe(0);
    },
  );

  it("leaves nothing held when it is killed while it fills", async () => {
    control("hang hipModuleLaunchKernel 3");
    const ending = start();
    const pid = await until(
      "the call that hangs",
      () => readdirSync(host.path("gpu")).flatMap((name) => Number(/^hangs-(\d+)$/.exec(name)?.[1] ?? 0) || [])[0],
    );
    process.kill(pid, "SIGKILL");
    expect(await ending).toMatchObject({ ok: false, code: "worker_lost" });
    expect(host.heldBytes()).toBe(0);
  });
});
