import { randomBytes, randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkAnswers } from "../../../hub/gpu-memory/expected-answers.ts";
import type { GpuFault } from "../../../shared/gpu-faults.ts";
import { GpuCommitment, sampleBlocksIn } from "../../../shared/gpu-memory.ts";
import { GpuHost, gpuUuid, hasCompiler, PCI_ADDRESS } from "../../../test/fakes/gpu/gpu-host.ts";
import { until } from "../../../test/support/until.ts";
import {
  ANSWER_FILE,
  CHALLENGE_FILE,
  COMMITMENT_FILE,
  END_FILE,
  GpuAnswers,
  type OverwriteOrder,
} from "../../gpu-memory/exchange.ts";
import { OVERWRITE_WORK } from "../../gpu-memory/overwrite-work.ts";

const UUID = gpuUuid(0);
const MIB = 2 ** 20;
const NONCE = randomBytes(16).toString("hex");

const HOOK_MS = 120_000;

describe.skipIf(!hasCompiler)("the worker of a GPU (SKIPPED without gcc, which builds a driver library)", () => {
  let host: GpuHost;
  let order: OverwriteOrder;
  let end: unknown;
  beforeEach(() => {
    host = new GpuHost();
    end = null;
    order = {
      fill_task_id: randomUUID(),
      folder: host.path("exchange"),
      gpu: 3,
      vendor: "nvidia",
      uuid: UUID,
      pci_address: PCI_ADDRESS,
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

  const start = async (deadlineSeconds = 120) => {
    const ended = await host.gpuSystem.workers.perform({
      taskId: order.fill_task_id,
      part: "gpu-3",
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
  const answers = () => GpuAnswers.parse(JSON.parse(host.read(`exchange/${ANSWER_FILE}`)));
  const correct = (blocks: number[]): number =>
    checkAnswers({
      fill_task_id: order.fill_task_id,
      seed: order.seed,
      nonce: NONCE,
      gpus: [{ gpu: order.gpu, uuid: UUID, blocks, answers: answers().answers }],
    })[0]?.correct ?? Number.NaN;

  it("fills all memory, answers the hub's questions about it, and leaves zeros and nothing held", async () => {
    const end = start();
    const committed = await commitment();
    expect(committed).toMatchObject({
      uuid: UUID,
      pci_address: PCI_ADDRESS,
      cuda_version: 13_000,
      hip_version: null,
      // The worker process keeps 2 MiB of GPU memory for the results of its kernels, so 10 of 12 MiB are left.
      allocated_bytes: 10 * MIB,
      visible_bytes: 12 * MIB,
      total_bytes: 15 * MIB,
      reserved_bytes: MIB,
      prefill_nonzero_units: 0,
      prefill_marker_units: null,
      kernels_error: null,
      mismatched_blocks: 0,
      first_mismatch: null,
    });
    expect(host.heldBytes()).toBe(12 * MIB);
    const blocks = [0, 1, 31, 32, 100, sampleBlocksIn(committed.allocated_bytes) - 1];
    challenge(blocks);
    expect(await end).toMatchObject({
      ok: true,
      result: { end: "answered", release: { zeroed_bytes: 10 * MIB, nonzero_units: 0 } },
    });
    expect(correct(blocks)).toBe(blocks.length);
    await until("nothing is held", () => (host.heldBytes() === 0 ? true : undefined));
  });

  it("counts what an earlier user left, and the marker of an earlier pass", async () => {
    host.control(`memory ${8 * MIB}\ndirty 171`);
    order = { ...order, marker: 0xabababab };
    const end = start();
    const units = (6 * MIB) / 16;
    expect(await commitment()).toMatchObject({ prefill_nonzero_units: units, prefill_marker_units: units });
    challenge([0]);
    expect(await end).toMatchObject({ ok: true, result: { release: { nonzero_units: 0 } } });
    expect(correct([0])).toBe(1);
  });

  it("finds a flipped bit on the device with its place, and asks nothing more of that memory", async () => {
    host.control(`memory ${8 * MIB}\nflip ${5 * 65_536 + 1_000}`);
    const end = start();
    expect(await commitment()).toMatchObject({
      mismatched_blocks: 1,
      first_mismatch: Math.floor((5 * 65_536 + 1_000) / 64) * 64,
    });
    expect(await end).toMatchObject({ ok: true, result: { end: "released" } });
  });

  it.each([
    ["the challenge does not come", 1, () => undefined],
    ["the agent wants the memory back", 60, () => host.write(`exchange/${END_FILE}`, "{}")],
    ["the challenge asks for memory that was not committed", 60, () => challenge([1_000_000])],
  ])("zeroes and frees the memory when %s", async (_when, hold, act) => {
    order = { ...order, hold_seconds: hold };
    const end = start();
    await commitment();
    act();
    expect(await end).toMatchObject({ ok: true, result: { end: "released", release: { nonzero_units: 0 } } });
    await until("nothing is held", () => (host.heldBytes() === 0 ? true : undefined));
  });

  it.each<[string, GpuFault]>([
    ["fail cuInit 100", "gpu_missing"],
    ["fail cuInit 802", "fabric_down"],
    ["fail cuInit 803", "driver_mismatch"],
    ["fail cuInit 999", "driver_refused"],
    ["fail cuDevicePrimaryCtxRetain 46", "gpu_busy"],
    ["fail cuLaunchKernel 209 1", "kernels_refused"],
    ["fail cuMemAlloc_v2 2", "gpu_busy"],
    ["fail cuMemAlloc_v2 2 1", "gpu_busy"],
    ["fail cuLaunchKernel 700 4", "memory_fault"],
    ["fail cuCtxSynchronize 214 2", "memory_fault"],
    ["fail cuMemcpyDtoH_v2 719 3", "memory_fault"],
    ["visible 2", "gpu_missing"],
    ["uuid ffffffffffffffffffffffffffffffff", "gpu_mismatch"],
    ["pci 0000:5E:00.0", "gpu_mismatch"],
  ])("names the fault when the driver says: %s", async (control, fault) => {
    host.control(`memory ${8 * MIB}\n${control}`);
    const end = await start();
    expect(end).toMatchObject({ ok: true, result: { end: "fault", fault } });
    expect(end.ok && end.result.end === "fault" ? end.result.message : "").toContain(UUID);
  });

  it.each(["fail cuModuleLoadDataEx 221", "fail cuModuleLoadDataEx 222"])(
    "fills and compares by copies when the driver does not compile the kernels: %s",
    async (control) => {
      host.control(`memory ${40 * MIB}\n${control}\ndirty 171`);
      order = { ...order, marker: 0xabababab };
      const end = start();
      const committed = await commitment();
      expect(committed).toMatchObject({
        kernels_error: expect.stringContaining("ptxas fatal"),
        allocated_bytes: 40 * MIB,
        prefill_nonzero_units: (40 * MIB) / 16,
        prefill_marker_units: (40 * MIB) / 16,
        mismatched_blocks: 0,
      });
      const blocks = [0, 255, 256, 639];
      challenge(blocks);
      expect(await end).toMatchObject({ result: { end: "answered", release: { nonzero_units: 0 } } });
      expect(correct(blocks)).toBe(blocks.length);
    },
  );

  it("names a missing library and a missing call", async () => {
    host.install("libcuda.so.1", "cuMemsetD32Async");
    expect(await start()).toMatchObject({
      result: { fault: "driver_too_old", message: expect.stringContaining("cuMemsetD32Async") },
    });
  });

  it("completes the evidence without NVIDIA's management library", async () => {
    host.write("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "no library");
    const end = start();
    expect(await commitment()).toMatchObject({ total_bytes: null, reserved_bytes: null, visible_bytes: 12 * MIB });
    host.write(`exchange/${END_FILE}`, "{}");
    expect(await end).toMatchObject({ ok: true });
  });

  it("is ended at its deadline when a call of the driver does not return", async () => {
    host.control("hang cuCtxSynchronize 1");
    expect(await start(2)).toMatchObject({ ok: false, code: "deadline_passed" });
    expect(host.heldBytes()).toBe(0);
  });
});
