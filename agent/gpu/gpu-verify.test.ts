import { describe, expect, it } from "vitest";
import { aGpu } from "./gpu-state.fixture.ts";
import { type GpuReadings, whyNotClean } from "./gpu-verify.ts";

const CLEAN: GpuReadings = { before: aGpu(), idle: aGpu(), after: aGpu(), settled: aGpu(), kernelFaults: [] };
const fault = { pci: "0000:3b:00.0", xid: 48, text: "NVRM: Xid 48" };
const settings = (name: string, value: string | null) => aGpu({ settings: { ...aGpu().settings, [name]: value } });

describe("a GPU after its reset", () => {
  it("is clean if it is as before and healthy", () => {
    expect(whyNotClean(CLEAN)).toEqual([]);
    expect(whyNotClean({ ...CLEAN, before: aGpu({ faults: ["gpu_recovery_action Reset"] }) })).toEqual([]);
  });

  it.each<[string, Partial<GpuReadings>]>([
    ["the GPU is missing after the reset", { after: undefined }],
    ["the GPU is missing after its services started", { settled: undefined }],
    ["the GPU was missing before the reset", { before: undefined }],
    ["the GPU was missing before the reset", { idle: undefined }],
    ["remapped_row_pending is Yes", { after: aGpu({ faults: ["remapped_row_pending is Yes"] }) }],
    ["gpu_recovery_action Reset", { settled: aGpu({ faults: ["gpu_recovery_action Reset"] }) }],
    ["21 MiB of memory are in use, where at most 20 MiB are expected", { after: aGpu({ memoryUsedMib: 21 }) }],
    [
      "2000 MiB of memory are in use, where at most 1024 MiB are expected",
      { idle: aGpu({ memoryUsedMib: 2000 }), after: aGpu({ memoryUsedMib: 2000 }) },
    ],
    ["the used memory is not known", { after: aGpu({ memoryUsedMib: null }) }],
    ["processes 41 use the GPU", { after: aGpu({ processes: [{ pid: 41, name: "python" }] }) }],
    ["the processes of the GPU are not known", { after: aGpu({ processes: null }) }],
    ["uuid was GPU-1 and is GPU-2", { after: aGpu({ uuid: "GPU-2" }) }],
    ["vbios was 96 and is 97", { after: aGpu({ vbios: "97" }) }],
    [
      "the setting compute_mode is Exclusive_Process, where Default is expected",
      { settled: settings("compute_mode", "Exclusive_Process") },
    ],
    [
      "the setting persistence_mode is Disabled, where Enabled is expected",
      { settled: settings("persistence_mode", "Disabled") },
    ],
    [
      "the setting power_limit is 300.00 W, where default is expected",
      { settled: settings("power_limit", "300.00 W") },
    ],
    ["the setting power_limit is not known", { settled: settings("power_limit", null) }],
    ["the fabric is starting", { after: aGpu({ fabric: "starting" }) }],
    ["the fabric is failed", { after: aGpu({ fabric: "failed" }) }],
    ["the fabric is absent", { idle: aGpu({ fabric: "ready" }) }],
    ["the kernel logged: NVRM: Xid 48", { kernelFaults: [fault] }],
  ])("is not clean: %s", (reason, differs) => {
    expect(whyNotClean({ ...CLEAN, ...differs })).toEqual([reason]);
  });

  it("may lack a setting that it does not have", () => {
    expect(whyNotClean({ ...CLEAN, settled: settings("compute_mode", "N/A") })).toEqual([]);
  });
});
