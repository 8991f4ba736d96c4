import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type AmdNode, amdNode, amdUuidOfFile } from "../../gpu-memory/amd-topology.ts";
import type { OverwriteOrder } from "../../gpu-memory/exchange.ts";
import { GpuFaultError } from "../../gpu-memory/faults.ts";
import { isMissing, readTextNow } from "../files.ts";

const NODES = "/sys/class/kfd/kfd/topology/nodes";

/**
 * Finds the GPU of the worker's order in the kernel's files about GPUs. A GPU in several partitions has several nodes in the kernel's files, and a
 * worker process would see the memory of only one.
 */
export function amdNodeOf(root: string, order: OverwriteOrder): AmdNode {
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
  const file = amdUuidOfFile(amdDeviceText(root, order.pci_address, "unique_id"));
  if (nodes.length === 1 && node.uuid === order.uuid && file === order.uuid) return node;
  throw new GpuFaultError(
    "gpu_mismatch",
    `GPU ${order.uuid} at ${order.pci_address} is ordered, and the kernel lists ${nodes.length} parts with the UUID ${node.uuid ?? file ?? "unknown"} there.`,
  );
}

/** The PCI addresses of one GPU's partitions differ only in the PCI function. */
const samePlace = (a: string, b: string): boolean => a.slice(0, -2) === b.slice(0, -2);

const deviceFile = (root: string, address: string, name: string): string =>
  join(root, "/sys/bus/pci/devices", address, name);

/** Returns the text of a file of the amdgpu driver about a GPU, or undefined if the driver has no such file. */
export const amdDeviceText = (root: string, address: string, name: string): string | undefined =>
  textOf(deviceFile(root, address, name))?.trim();

/** Returns the number in a file of the amdgpu driver about a GPU, or null if the driver does not tell the number. */
export function amdDeviceNumber(root: string, address: string, name: string): number | null {
  const text = amdDeviceText(root, address, name) ?? "";
  return /^\d+$/.test(text) ? Number(text) : null;
}

/** A device file under `/dev/dri`, and the number of the device to which the file must lead. */
export interface RenderNode {
  readonly path: string;
  readonly device: string;
}

/**
 * Returns the DRM device file of the GPU at a PCI address. The kernel's own folder about the GPU names the device file, so the device file never
 * belongs to another GPU.
 */
export function renderNodeAt(root: string, address: string): RenderNode | null {
  const name = namesIn(deviceFile(root, address, "drm")).find((one) => /^renderD\d+$/.test(one));
  const device = name === undefined ? undefined : amdDeviceText(root, address, `drm/${name}/dev`);
  return name === undefined || device === undefined ? null : { path: join(root, "/dev/dri", name), device };
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
