import { pciAddress } from "../../gpu/gpu-state.ts";
import type { GpuFacts, OpenedGpu } from "../../gpu-memory/device.ts";
import type { OverwriteOrder } from "../../gpu-memory/exchange.ts";
import { GpuFaultError } from "../../gpu-memory/faults.ts";
import { type Cuda, openCuda, readNvmlMemory } from "./cuda-library.ts";
import { cudaPort } from "./cuda-port.ts";
import { openDevice } from "./open-device.ts";

export interface CudaPaths {
  readonly cuda: string;
  readonly nvml: string;
}

/**
 * Opens the GPU that the worker process's order names. CUDA_VISIBLE_DEVICES names only the ordered GPU, so that NVIDIA's driver shows no other GPU to
 * the worker process.
 */
export function openCudaGpu(order: OverwriteOrder, paths: CudaPaths): OpenedGpu {
  const cuda = openCuda(paths.cuda);
  cuda.call("cuInit", [0]);
  const count = intOf(cuda, "cuDeviceGetCount");
  if (count !== 1)
    throw new GpuFaultError("gpu_missing", `GPU ${order.uuid}: the driver shows ${count} GPUs for this UUID.`);
  const number = intOf(cuda, "cuDeviceGet", 0);
  const facts = factsOf(cuda, number, order, paths);
  cuda.call("cuCtxSetCurrent", [cuda.get("cuDevicePrimaryCtxRetain", number)]);
  return { ...openDevice(cudaPort(cuda), order.seed), facts, usedBytes: () => null };
}

function factsOf(cuda: Cuda, number: number, order: OverwriteOrder, paths: CudaPaths): GpuFacts {
  const bytes = Buffer.alloc(16);
  cuda.call("cuDeviceGetUuid_v2", [bytes, number]);
  const uuid = `GPU-${bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}`;
  const text = Buffer.alloc(32);
  cuda.call("cuDeviceGetPCIBusId", [text, text.length, number]);
  const told = text.toString("latin1").split("\0", 1)[0] ?? "";
  if (uuid !== order.uuid || pciAddress(told) !== pciAddress(order.pci_address))
    throw new GpuFaultError(
      "gpu_mismatch",
      `GPU ${order.uuid} at ${order.pci_address} is ordered, and the driver opened ${uuid} at ${told}.`,
    );
  return {
    uuid,
    pciAddress: order.pci_address,
    cudaVersion: intOf(cuda, "cuDriverGetVersion"),
    hipVersion: null,
    visibleBytes: Number(cuda.get("cuDeviceTotalMem_v2", number)),
    memory: readNvmlMemory(paths.nvml, order.uuid),
  };
}

function intOf(cuda: Cuda, name: "cuDeviceGetCount" | "cuDriverGetVersion" | "cuDeviceGet", ...args: number[]): number {
  const out = Buffer.alloc(4);
  cuda.call(name, [out, ...args]);
  return out.readInt32LE();
}
