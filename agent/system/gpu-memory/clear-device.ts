import { closeSync, constants, fstatSync, openSync } from "node:fs";
import type { ClearingDriver, OpenedClearing } from "../../gpu-memory/clear.ts";
import { gemCreate, gemWaitIdle, handleIn, isIdle, mmapOffsetIn, ofHandle } from "../../gpu-memory/drm-requests.ts";
import { NO_MEMORY } from "../../gpu-memory/drm-results.ts";
import type { OverwriteOrder } from "../../gpu-memory/exchange.ts";
import { DriverError, GpuFaultError } from "../../gpu-memory/faults.ts";
import { deviceNumber } from "../device-holders.ts";
import { amdDeviceNumber, amdDeviceText, amdNodeOf, type RenderNode } from "./amd-device-files.ts";
import { type Drm, openDrm } from "./drm-library.ts";

export interface ClearPaths {
  readonly root: string;
  /** The C library of the host, whose calls reach the kernel. */
  readonly c: string;
  readonly renderNode: RenderNode;
}

/** How many seconds a GPU may take to clear one buffer of 4 GiB. */
const CLEAR_SECONDS = 60n;
const ETIME = 62;

/** A worker process never touches a GPU whose UUID or PCI address differs from its order, nor a GPU in several partitions. */
export function openClearing(order: OverwriteOrder, { root, c, renderNode }: ClearPaths): OpenedClearing {
  amdNodeOf(root, order);
  const partition = amdDeviceText(root, order.pci_address, "current_memory_partition") ?? "NPS1";
  if (partition !== "NPS1")
    throw new GpuFaultError(
      "gpu_mismatch",
      `The memory of GPU ${order.uuid} is divided into the partitions ${partition.slice(0, 16)}, and a buffer would lie in one of them only.`,
    );
  const counted = (name: string): number => {
    const bytes = amdDeviceNumber(root, order.pci_address, name);
    if (bytes === null)
      throw new GpuFaultError("counter_unreadable", `GPU ${order.uuid}: the amdgpu driver does not tell ${name}.`);
    return bytes;
  };
  const totalBytes = counted("mem_info_vram_total");
  const used = () => ({ vram: counted("mem_info_vram_used"), gtt: counted("mem_info_gtt_used") });
  return {
    driver: clearingDriver(openDrm(c), openRenderNode(order, renderNode), used),
    totalBytes,
    barBytes: amdDeviceNumber(root, order.pci_address, "mem_info_vis_vram_total"),
  };
}

/** Opens a device file, but refuses a file that has the name of the GPU's device file and is not the GPU's device. */
function openRenderNode(order: OverwriteOrder, { path, device }: RenderNode): number {
  const file = openSync(path, constants.O_RDWR);
  const stats = fstatSync(file);
  if (stats.isCharacterDevice() && deviceNumber(stats) === device) return file;
  closeSync(file);
  throw new GpuFaultError(
    "gpu_mismatch",
    `The file ${path} is not the device ${device} of GPU ${order.uuid} at ${order.pci_address}.`,
  );
}

const clearingDriver = (drm: Drm, file: number, used: ClearingDriver["used"]): ClearingDriver => ({
  create: (bytes) => {
    const struct = gemCreate(bytes);
    return drm.ioctl(file, "gemCreate", struct, NO_MEMORY) === 0 ? handleIn(struct) : null;
  },
  waitCleared: (handle) => {
    const struct = gemWaitIdle(handle, process.hrtime.bigint() + CLEAR_SECONDS * 1_000_000_000n);
    drm.ioctl(file, "gemWaitIdle", struct);
    if (!isIdle(struct))
      throw new DriverError("gemWaitIdle", ETIME, "driver_refused", `the GPU works on a buffer for ${CLEAR_SECONDS} s`);
  },
  reading: (handle, bytes, work) => {
    const struct = ofHandle(handle);
    drm.ioctl(file, "gemMmap", struct);
    const address = drm.mmap(file, bytes, mmapOffsetIn(struct));
    try {
      work((offset, length) => drm.copy(address + BigInt(offset), length));
    } finally {
      drm.munmap(address, bytes);
    }
  },
  close: (handle) => void drm.ioctl(file, "gemClose", ofHandle(handle)),
  used,
});
