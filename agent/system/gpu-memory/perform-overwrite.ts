import { join } from "node:path";
import { CUDA_LIBRARY, LIBRARY_FOLDERS } from "../../gpu-memory/cuda-files.ts";
import { driverVariables, foreignVariables } from "../../gpu-memory/environment.ts";
import type { OverwriteOrder, OverwriteResult } from "../../gpu-memory/exchange.ts";
import { asGpuFault, GpuFaultError } from "../../gpu-memory/faults.ts";
import { mark, type OverwriteRun, overwrite } from "../../gpu-memory/overwrite.ts";
import { isPresent } from "../files.ts";
import type { CudaPaths } from "./cuda-device.ts";
import { exchangeIn } from "./exchange-files.ts";

const NVML_LIBRARY = "libnvidia-ml.so.1";

async function cudaPaths(root: string): Promise<CudaPaths> {
  for (const folder of LIBRARY_FOLDERS) {
    const cuda = join(root, folder, CUDA_LIBRARY);
    if (await isPresent(cuda)) return { cuda, nvml: join(root, folder, NVML_LIBRARY) };
  }
  throw new GpuFaultError("driver_missing", `None of ${LIBRARY_FOLDERS.join(", ")} contains ${CUDA_LIBRARY}.`);
}

/**
 * The work of the worker process that marks or overwrites the memory of one GPU. Each GPU has a separate worker process, because NVIDIA's driver may
 * block and because a driver context belongs to one thread. Only the end of the worker process surely gives the GPU memory back.
 */
export async function performOverwrite(
  order: OverwriteOrder,
  run: OverwriteRun & { readonly root: string },
): Promise<OverwriteResult> {
  for (const name of foreignVariables(process.env)) delete process.env[name];
  Object.assign(process.env, driverVariables(order.uuid));
  const exchange = exchangeIn(order.folder);
  await exchange.begin();
  try {
    const paths = await cudaPaths(run.root);
    run.progress({ step: "open", done: 0, bytes: 0 });
    const began = performance.now();
    // Only a worker process loads the foreign function interface `koffi`; the agent's own process never loads it.
    const { openCudaGpu } = await import("./cuda-device.ts");
    const opened = openCudaGpu(order, paths);
    const openMs = Math.round(performance.now() - began);
    if (order.pass === "mark") return await mark(order, opened, run);
    return await overwrite(order, { ...opened, openMs }, exchange, run);
  } catch (error) {
    const fault = asGpuFault(error, order.uuid);
    if (fault instanceof GpuFaultError) return { end: "fault", fault: fault.fault, message: fault.message };
    throw fault;
  }
}
