import { join } from "node:path";
import { clearMemory } from "../../gpu-memory/clear.ts";
import { CUDA_LIBRARY, LIBRARY_FOLDERS } from "../../gpu-memory/cuda-files.ts";
import { driverVariables, foreignVariables } from "../../gpu-memory/environment.ts";
import type { OverwriteOrder, OverwriteResult } from "../../gpu-memory/exchange.ts";
import { asGpuFault, GpuFaultError } from "../../gpu-memory/faults.ts";
import { hipFolders, hipLibraries, ROCM_PARENT } from "../../gpu-memory/hip-files.ts";
import { type Exchange, mark, type OverwriteRun, overwrite } from "../../gpu-memory/overwrite.ts";
import { techniqueOf } from "../../gpu-memory/technique.ts";
import { isPresent, listFolder } from "../files.ts";
import { renderNodeAt } from "./amd-device-files.ts";
import type { ClearPaths } from "./clear-device.ts";
import type { CudaPaths } from "./cuda-device.ts";
import { exchangeIn } from "./exchange-files.ts";
import type { HipPaths } from "./hip-device.ts";

const NVML_LIBRARY = "libnvidia-ml.so.1";
const C_LIBRARY = "libc.so.6";

async function cudaPaths(root: string): Promise<CudaPaths | null> {
  for (const folder of LIBRARY_FOLDERS) {
    const cuda = join(root, folder, CUDA_LIBRARY);
    if (await isPresent(cuda)) return { cuda, nvml: join(root, folder, NVML_LIBRARY) };
  }
  return null;
}

async function hipPaths(root: string): Promise<HipPaths | null> {
  for (const folder of hipFolders(await listFolder(join(root, ROCM_PARENT)))) {
    const found = hipLibraries(await listFolder(join(root, folder)));
    if (found === null) continue;
    return { root, hip: join(root, folder, found.hip), hiprtc: join(root, folder, found.hiprtc) };
  }
  return null;
}

async function clearPaths(root: string, { pci_address: address }: OverwriteOrder): Promise<ClearPaths | null> {
  const renderNode = renderNodeAt(root, address);
  if (renderNode === null) return null;
  for (const folder of LIBRARY_FOLDERS) {
    const c = join(root, folder, C_LIBRARY);
    if (await isPresent(c)) return { root, c, renderNode };
  }
  return null;
}

const MISSING = {
  nvidia: `None of ${LIBRARY_FOLDERS.join(", ")} contains ${CUDA_LIBRARY}.`,
  amd: `Neither a folder rocm-* of ${ROCM_PARENT} nor the system's library folders contain libamdhip64.so, and the amdgpu driver has no device file renderD* of the GPU.`,
} as const;

/** Only a worker process loads the foreign function interface `koffi`; the agent's own process never loads it. */
async function perform(
  order: OverwriteOrder,
  exchange: Exchange,
  run: OverwriteRun & { readonly root: string },
): Promise<OverwriteResult> {
  const { root } = run;
  const isAmd = order.vendor === "amd";
  const cuda = isAmd ? null : await cudaPaths(root);
  const hip = isAmd ? await hipPaths(root) : null;
  const clear = isAmd ? await clearPaths(root, order) : null;
  const found = { cuda: cuda !== null, hip: hip !== null, renderNode: clear !== null };
  const technique = techniqueOf(order.vendor, found);
  const began = performance.now();
  if (technique === "kernel_clear" && clear !== null) {
    if (order.marker !== null)
      throw new GpuFaultError(
        "unsupported",
        `GPU ${order.uuid}: the kernel's driver clears memory, and writes no marker.`,
      );
    const { openClearing } = await import("./clear-device.ts");
    return clearMemory(order, openClearing(order, clear), run);
  }
  const opened =
    technique === "cuda" && cuda !== null
      ? (await import("./cuda-device.ts")).openCudaGpu(order, cuda)
      : technique === "hip" && hip !== null
        ? (await import("./hip-device.ts")).openHipGpu(order, hip)
        : null;
  if (opened === null) throw new GpuFaultError("driver_missing", MISSING[order.vendor]);
  const openMs = Math.round(performance.now() - began);
  if (order.pass === "mark") return mark(order, opened, run);
  return overwrite(order, { ...opened, openMs }, exchange, run);
}

/**
 * Each GPU has a separate worker process, because a GPU's driver may block and because a driver context belongs to one thread. Only the end of the
 * worker process surely gives the GPU memory back.
 */
export async function performOverwrite(
  order: OverwriteOrder,
  run: OverwriteRun & { readonly root: string },
): Promise<OverwriteResult> {
  for (const name of foreignVariables(process.env)) delete process.env[name];
  Object.assign(process.env, driverVariables(order.vendor, order.uuid));
  const exchange = exchangeIn(order.folder);
  await exchange.begin();
  try {
    run.progress({ step: "open", done: 0, bytes: 0 });
    return await perform(order, exchange, run);
  } catch (error) {
    const fault = asGpuFault(error, order.uuid);
    if (fault instanceof GpuFaultError) return { end: "fault", fault: fault.fault, message: fault.message };
    throw fault;
  }
}
