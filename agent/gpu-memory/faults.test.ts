import { describe, expect, it } from "vitest";
import { GPU_FAULT_CODES, GPU_FAULTS } from "../../shared/gpu-faults.ts";
import { faultOfCuda } from "./cuda-results.ts";
import { driverVariables, foreignVariables } from "./environment.ts";
import { asGpuFault, DriverError, GpuFaultError } from "./faults.ts";

describe("faultOfCuda", () => {
  it("names a fault of the closed set for every error number of the driver", () => {
    for (let result = 1; result < 1_000; result += 1) expect(GPU_FAULT_CODES).toContain(faultOfCuda(result));
  });

  it.each([
    ["gpu_busy", [2, 46, 805, 810]],
    ["driver_missing", [34]],
    ["gpu_missing", [100, 101]],
    ["kernels_refused", [200, 209, 218, 221, 222, 223]],
    ["memory_fault", [214, 226, 700, 719]],
    ["fabric_down", [802]],
    ["driver_mismatch", [803]],
    ["driver_refused", [1, 201, 304, 800, 916, 999]],
  ] as const)("is %s for %j", (fault, results) => {
    expect([...new Set(results.map(faultOfCuda))]).toEqual([fault]);
  });
});

describe("asGpuFault", () => {
  it("says which GPU, which call and what to do next", () => {
    const fault = asGpuFault(new DriverError("cuInit", 802, "fabric_down"), "GPU-1");
    expect(fault).toBeInstanceOf(GpuFaultError);
    expect(String(fault)).toBe(`GpuFaultError: GPU GPU-1: cuInit returned 802. ${GPU_FAULTS.fabric_down}`);
  });

  it("leaves every other error as it is", () => {
    const error = new TypeError("a fault of our own");
    expect(asGpuFault(error, "GPU-1")).toBe(error);
  });
});

describe("the environment of a worker", () => {
  it("loses what changes the loader or the driver, and nothing else", () => {
    const foreign = [
      "LD_PRELOAD",
      "LD_LIBRARY_PATH",
      "LD_AUDIT",
      "CUDA_INJECTION64_PATH",
      "NVIDIA_VISIBLE_DEVICES",
      "HIP_VISIBLE_DEVICES",
      "ROCR_VISIBLE_DEVICES",
      "HSA_OVERRIDE_GFX_VERSION",
      "AMD_COMGR_SAVE_TEMPS",
      "GPU_MAX_HEAP_SIZE",
    ];
    const kept = ["PATH", "MUSTER_ROOT", "LC_ALL", "MYCUDA_X", "NODE_OPTIONS", "SHIP_X"];
    const environment = Object.fromEntries([...foreign, ...kept].map((name) => [name, "1"]));
    expect(foreignVariables(environment)).toEqual(foreign);
  });

  it("shows AMD's runtime one GPU, in the upper case in which the runtime compares", () => {
    expect(driverVariables("amd", "GPU-00ab00ab00ab00ab")).toEqual({ ROCR_VISIBLE_DEVICES: "GPU-00AB00AB00AB00AB" });
  });

  it("shows the driver one GPU, and no MPS server", () => {
    expect(driverVariables("nvidia", "GPU-1")).toEqual({
      CUDA_DEVICE_ORDER: "PCI_BUS_ID",
      CUDA_VISIBLE_DEVICES: "GPU-1",
      CUDA_CACHE_DISABLE: "1",
      CUDA_MPS_PIPE_DIRECTORY: "/nonexistent",
    });
  });
});
