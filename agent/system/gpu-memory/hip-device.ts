import { pciAddress } from "../../gpu/gpu-state.ts";
import type { GpuFacts, OpenedGpu } from "../../gpu-memory/device.ts";
import type { OverwriteOrder } from "../../gpu-memory/exchange.ts";
import { GpuFaultError } from "../../gpu-memory/faults.ts";
import { amdDeviceNumber, amdNodeOf } from "./amd-device-files.ts";
import { type Hip, openHip } from "./hip-library.ts";
import { hipPort } from "./hip-port.ts";
import { openDevice } from "./open-device.ts";

export interface HipPaths {
  readonly root: string;
  readonly hip: string;
  readonly hiprtc: string;
}

/**
 * AMD's runtime shows only the GPU that ROCR_VISIBLE_DEVICES names, so the worker process sees no other GPU. A worker process never touches the
 * memory of a GPU whose UUID or PCI address differs from the worker's order.
 */
export function openHipGpu(order: OverwriteOrder, { root, hip: path, hiprtc }: HipPaths): OpenedGpu {
  const { arch } = amdNodeOf(root, order);
  const hip = openHip(path);
  hip.call("hipInit", [0]);
  const count = intOf(hip, "hipGetDeviceCount");
  if (count !== 1)
    throw new GpuFaultError("gpu_missing", `GPU ${order.uuid}: the driver shows ${count} GPUs for this UUID.`);
  hip.call("hipSetDevice", [0]);
  const device = (name: string) => amdDeviceNumber(root, order.pci_address, name);
  return {
    facts: factsOf(hip, order, device("mem_info_vram_total")),
    usedBytes: () => device("mem_info_vram_used"),
    ...openDevice(hipPort(hip, { path: hiprtc, arch }), order.seed),
  };
}

function factsOf(hip: Hip, order: OverwriteOrder, totalBytes: number | null): GpuFacts {
  const text = Buffer.alloc(32);
  hip.call("hipDeviceGetPCIBusId", [text, text.length, 0]);
  const told = text.toString("latin1").split("\0", 1)[0] ?? "";
  if (pciAddress(told) !== pciAddress(order.pci_address))
    throw new GpuFaultError(
      "gpu_mismatch",
      `GPU ${order.uuid} at ${order.pci_address} is ordered, and the driver opened a GPU at ${told}.`,
    );
  return {
    uuid: order.uuid,
    pciAddress: order.pci_address,
    cudaVersion: null,
    hipVersion: intOf(hip, "hipDriverGetVersion"),
    visibleBytes: Number(hip.get("hipDeviceTotalMem", 0)),
    memory: totalBytes === null ? null : { totalBytes, reservedBytes: null },
  };
}

function intOf(hip: Hip, name: "hipGetDeviceCount" | "hipDriverGetVersion"): number {
  const out = Buffer.alloc(4);
  hip.call(name, [out]);
  return out.readInt32LE();
}
