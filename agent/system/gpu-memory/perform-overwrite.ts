import { join } from "node:path";
import { CUDA_LIBRARY, LIBRARY_FOLDERS } from "../../gpu-memory/cuda-files.ts";
import type { OpenedGpu } from "../../gpu-memory/device.ts";
import { driverVariables, foreignVariables } from "../../gpu-memory/environment.ts";
import type { OverwriteOrder, OverwriteResult } from "../../gpu-memory/exchange.ts";
import { asGpuFault, GpuFaultError } from "../../gpu-memory/faults.ts";
import { hipFolders, hipLibraries, ROCM_PARENT } from "../../gpu-memory/hip-files.ts";
import { mark, type OverwriteRun, overwrite } from "../../gpu-memory/overwrite.ts";
import { isPresent, listFolder } from "../files.ts";
import type { CudaPaths } from "./cuda-device.ts";
import { exchangeIn } from "./exchange-files.ts";
import type { HipPaths } from "./hip-device.ts";

const NVML_LIBRARY = "libnvidia-ml.so.1";

async function cudaPaths(root: string): Promise<CudaPaths> {
  for (const folder of LIBRARY_FOLDERS) {
    const cuda = join(root, folder, CUDA_LIBRARY);
    if (await isPresent(cuda)) return { cuda, nvml: join(root, folder, NVML_LIBRARY) };
  }
  throw new GpuFaultError("driver_missing", `None of ${LIBRARY_FOLDERS.join(", ")} contains ${CUDA_LIBRARY}.`);
}

async function hipPaths(root: string): Promise<HipPaths> {
  const folders = hipFolders(await listFolder(join(root, ROCM_PARENT)));
  for (const folder of folders) {
    const found = hipLibraries(await listFolder(join(root, folder)));
    if (found === null) continue;
    return { root, hip: join(root, folder, found.hip), hiprtc: join(root, folder, found.hiprtc) };
  }
  throw new GpuFaultError("driver_missing", `None of ${folders.join(", ")} contains libamdhip64.so.`);
}

/** Only a worker process loads the foreign function interface `koffi`; the agent's own process never loads it. */
async function openGpu(order: OverwriteOrder, root: string): Promise<OpenedGpu> {
  if (order.vendor === "amd") {
    const paths = await hipPaths(root);
    const { openHipGpu } = await import("./hip-device.ts");
    return openHipGpu(order, paths);
  }
  const paths = await cudaPaths(root);
  const { openCudaGpu } = await import("./cuda-device.ts");
  return openCudaGpu(order, paths);
}

/**
 * The work of the worker process that marks or overwrites the memory of one GPU. Each GPU has a separate worker process, because a GPU's driver may
 * block and because a driver context belongs to one thread. Only the end of the worker process surely gives the GPU memory back.
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
    const began = performance.now();
    const opened = await openGpu(order, run.root);
    const openMs = Math.round(performance.now() - began);
    if (order.pass === "mark") return await mark(order, opened, run);
    return await overwrite(order, { ...opened, openMs }, exchange, run);
  } catch (error) {
    const fault = asGpuFault(error, order.uuid);
    if (fault instanceof GpuFaultError) return { end: "fault", fault: fault.fault, message: fault.message };
    throw fault;
  }
}
