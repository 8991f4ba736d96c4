import { randomBytes, randomInt } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { challengeOf, evidenceOf } from "../../hub/gpu-memory/gpu-evidence.ts";
import { gpuVerdict } from "../../hub/gpu-memory/verdict.ts";
import { TASKS, type TaskInput } from "../../shared/tasks/index.ts";
import { AMD_PCI_ADDRESS, amdGpuUuid, GpuHost, hasCompiler } from "../../test/fakes/gpu/gpu-host.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { gpuFill } from "./gpu-fill.ts";

const MIB = 2 ** 20;
const QUICK = { lookEveryMs: 20, endWithinMs: 20_000, tellEveryMs: 0 };
const AMD = { vendor: "amd", uuid: amdGpuUuid(0), pci_address: AMD_PCI_ADDRESS } as const;
const DEVICE = `sys/bus/pci/devices/${AMD_PCI_ADDRESS}`;

describe.skipIf(!hasCompiler)("node.gpu_fill on an AMD host without HIP (SKIPPED without gcc)", () => {
  let host: GpuHost;
  beforeEach(() => {
    host = new GpuHost();
    host.amdGpu(0, AMD_PCI_ADDRESS);
    host.installDrm(AMD_PCI_ADDRESS);
  });
  afterEach(() => host.remove());

  const input: TaskInput<"node.gpu_fill"> = {
    plan: false,
    seed: randomBytes(32).toString("hex"),
    marker: null,
    gpus: [AMD],
    deadline_seconds: 100,
    hold_seconds: 100,
  };
  const filledWith = async (said: string) => {
    const counts = `vram ${DEVICE}/mem_info_vram_used\ngtt ${DEVICE}/mem_info_gtt_used`;
    host.control(`memory ${12 * MIB}\ndirty 171\n${counts}\n${said}`);
    const taskId = newTaskId();
    const run = { taskId, signal: new AbortController().signal, progress: () => undefined };
    const reply = await gpuFill(host.gpuSystem, QUICK)(input, run);
    if (!reply.ok) throw new Error(reply.message);
    return { taskId, input, result: TASKS["node.gpu_fill"].result.parse(reply.result) };
  };
  const expected = [{ uuid: AMD.uuid, address: AMD.pci_address, bytes: null, isReset: true }];

  it("reports the cleared memory, of which the hub asks nothing, and holds nothing", async () => {
    const filled = await filledWith("");
    expect(filled.result).toMatchObject({
      steps: [
        { outcome: "ok", evidence: { technique: "kernel_clear", cleared_bytes: 12 * MIB, unreached_bytes: 4 * MIB } },
      ],
      commitments: [],
      clears: [{ uuid: AMD.uuid, sampled_bytes: 12 * MIB, nonzero_units: 0 }],
      faults: [],
    });
    expect(challengeOf(filled, "", randomInt, 60)).toBeNull();
    const verdicts = evidenceOf(expected, filled, null, [], {}).map(gpuVerdict);
    expect(verdicts).toMatchObject([{ level: "overwritten", share: 0.75 }]);
  });

  it("reports memory that the driver did not clear as a fault", async () => {
    const filled = await filledWith("uncleared");
    expect(filled.result).toMatchObject({
      steps: [{ outcome: "failed" }],
      clears: [{ uuid: AMD.uuid, nonzero_units: (12 * MIB) / 16 }],
      faults: [{ target: AMD.uuid, fault: "not_cleared" }],
    });
    expect(evidenceOf(expected, filled, null, [], {}).map(gpuVerdict)).toMatchObject([{ level: "reset_only" }]);
  });
});
