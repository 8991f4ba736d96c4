import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pciAddress } from "../../gpu/gpu-state.ts";
import { type AmdNode, amdNode, amdUuidOfFile } from "../../gpu-memory/amd-topology.ts";
import type { GpuFacts, OpenedGpu } from "../../gpu-memory/device.ts";
import type { OverwriteOrder } from "../../gpu-memory/exchange.ts";
import { GpuFaultError } from "../../gpu-memory/faults.ts";
import { isMissing, readTextNow } from "../files.ts";
import { type Hip, openHip } from "./hip-library.ts";
import { hipPort } from "./hip-port.ts";
import { openDevice } from "./open-device.ts";

export interface HipPaths {
  /** The folder that stands for the host's root. */
  readonly root: string;
  readonly hip: string;
  readonly hiprtc: string;
}

const NODES = "/sys/class/kfd/kfd/topology/nodes";

/**
 * Opens the AMD GPU that the worker's order names. The environment variable ROCR_VISIBLE_DEVICES names only this GPU, so that AMD's runtime shows one
 * GPU to the worker process. A worker process never touches the memory of a GPU whose UUID or PCI address differs from the worker's order.
 */
export function openHipGpu(order: OverwriteOrder, { root, hip: path, hiprtc }: HipPaths): OpenedGpu {
  const { arch } = nodeOf(root, order);
  const hip = openHip(path);
  hip.call("hipInit", [0]);
  const count = intOf(hip, "hipGetDeviceCount");
  if (count !== 1)
    throw new GpuFaultError("gpu_missing", `GPU ${order.uuid}: the driver shows ${count} GPUs for this UUID.`);
  hip.call("hipSetDevice", [0]);
  const device = (name: string) => deviceNumber(root, order.pci_address, name);
  return {
    facts: factsOf(hip, order, device("mem_info_vram_total")),
    usedBytes: () => device("mem_info_vram_used"),
    ...openDevice(hipPort(hip, { path: hiprtc, arch }), order.seed),
  };
}

/**
 * Finds the GPU in the files of the kernel. A GPU in several partitions has several nodes, and a worker process would see only the memory of one of
 * them.
 */
function nodeOf(root: string, order: OverwriteOrder): AmdNode {
  const nodes = namesIn(join(root, NODES)).flatMap((name) => {
    const node = amdNode(textOf(join(root, NODES, name, "properties")) ?? "");
    return node !== null && samePlace(node.pciAddress, order.pci_address) ? [node] : [];
  });
  const [node] = nodes;
  if (node === undefined)
    throw new GpuFaultError(
      "gpu_missing",
      `GPU ${order.uuid}: the driver amdkfd lists no GPU at ${order.pci_address}.`,
    );
  const file = amdUuidOfFile(textOf(deviceFile(root, order.pci_address, "unique_id")));
  if (nodes.length === 1 && node.uuid === order.uuid && file === order.uuid) return node;
  throw new GpuFaultError(
    "gpu_mismatch",
    `GPU ${order.uuid} at ${order.pci_address} is ordered, and the kernel lists ${nodes.length} parts with the UUID ${node.uuid ?? file ?? "unknown"} there.`,
  );
}

/** The nodes of the partitions of one GPU differ in the PCI function. */
const samePlace = (a: string, b: string): boolean => a.slice(0, -2) === b.slice(0, -2);

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

const deviceFile = (root: string, address: string, name: string): string =>
  join(root, "/sys/bus/pci/devices", address, name);

function deviceNumber(root: string, address: string, name: string): number | null {
  const text = textOf(deviceFile(root, address, name))?.trim() ?? "";
  return /^\d+$/.test(text) ? Number(text) : null;
}

function textOf(file: string): string | undefined {
  try {
    return readTextNow(file);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
