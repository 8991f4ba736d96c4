import { pciAddress } from "../../gpu/gpu-state.ts";
import type { GpuFacts, OpenedGpu } from "../../gpu-memory/device.ts";
import type { OverwriteOrder } from "../../gpu-memory/exchange.ts";
import { CudaError, faultOfResult, GpuFaultError } from "../../gpu-memory/faults.ts";
import { CopyDevice } from "./copy-device.ts";
import { type Cuda, openCuda, readNvmlMemory } from "./cuda-library.ts";
import { KernelDevice } from "./kernel-device.ts";

export interface DriverPaths {
  readonly cuda: string;
  readonly nvml: string;
}

/**
 * Opens the GPU that the worker's order names. The environment variable CUDA_VISIBLE_DEVICES names only this GPU, so that NVIDIA's driver shows one
 * GPU to the worker process. A worker process never touches the memory of a GPU whose UUID or PCI address differs from the worker's order.
 */
export function openGpu(order: OverwriteOrder, paths: DriverPaths): OpenedGpu {
  const cuda = openCuda(paths.cuda);
  cuda.call("cuInit", [0]);
  const count = intOf(cuda, "cuDeviceGetCount");
  if (count !== 1)
    throw new GpuFaultError("gpu_missing", `GPU ${order.uuid}: the driver shows ${count} GPUs for this UUID.`);
  const number = intOf(cuda, "cuDeviceGet", 0);
  const facts = factsOf(cuda, number, order, paths);
  cuda.call("cuCtxSetCurrent", [cuda.get("cuDevicePrimaryCtxRetain", number)]);
  return { ...deviceOf(cuda, order.seed), facts };
}

/**
 * NVIDIA's driver compiles GPU kernels with a separate library, which a host may lack. If the driver refuses the kernels, the host's processor
 * computes the ChaCha20 stream and copies the stream to the GPU and back. Copies between the host's memory and the GPU take longer than GPU kernels,
 * but prove equally that the GPU's memory contains the stream.
 */
function deviceOf(cuda: Cuda, seed: string): Omit<OpenedGpu, "facts"> {
  try {
    return { device: new KernelDevice(cuda, seed), kernelsError: null };
  } catch (error) {
    if (!(error instanceof CudaError) || faultOfResult(error.result) !== "kernels_refused") throw error;
    return { device: new CopyDevice(cuda, seed), kernelsError: error.message.slice(0, 256) };
  }
}

function factsOf(cuda: Cuda, number: number, order: OverwriteOrder, paths: DriverPaths): GpuFacts {
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
    visibleBytes: Number(cuda.get("cuDeviceTotalMem_v2", number)),
    memory: readNvmlMemory(paths.nvml, order.uuid),
  };
}

function intOf(cuda: Cuda, name: "cuDeviceGetCount" | "cuDriverGetVersion" | "cuDeviceGet", ...args: number[]): number {
  const out = Buffer.alloc(4);
  cuda.call(name, [out, ...args]);
  return out.readInt32LE();
}
