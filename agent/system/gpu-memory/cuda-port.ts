import { kernelsPtx } from "../../gpu-memory/cuda-kernels.ts";
import { CUDA_OUT_OF_MEMORY } from "../../gpu-memory/cuda-results.ts";
import { DriverError } from "../../gpu-memory/faults.ts";
import { KERNEL_NAMES, THREADS_PER_GROUP } from "../../gpu-memory/kernel-calls.ts";
import type { Cuda } from "./cuda-library.ts";
import type { DriverPort } from "./driver-port.ts";

const ON_DEFAULT_STREAM = 0n;
/** The numbers of two options of the driver call cuModuleLoadDataEx: the buffer for the compiler's errors, and its size. */
const [ERROR_LOG_BUFFER, ERROR_LOG_BYTES] = [5, 6];
const LOG_BYTES = 1_024;

export const cudaPort = (cuda: Cuda): DriverPort => ({
  allocate: (bytes) => {
    const out = Buffer.alloc(8);
    return cuda.call("cuMemAlloc_v2", [out, bytes], [CUDA_OUT_OF_MEMORY]) === 0 ? out.readBigUInt64LE() : null;
  },
  take: (bytes) => cuda.get("cuMemAlloc_v2", bytes),
  free: (address) => void cuda.call("cuMemFree_v2", [address]),
  set: (address, bytes, word) => {
    cuda.call("cuMemsetD32Async", [address, word, bytes / 4, ON_DEFAULT_STREAM]);
    cuda.call("cuCtxSynchronize", []);
  },
  read: (address, bytes) => {
    const to = Buffer.alloc(bytes);
    cuda.call("cuMemcpyDtoH_v2", [to, address, bytes]);
    return to;
  },
  write: (address, from) => void cuda.call("cuMemcpyHtoD_v2", [address, from, from.length]),
  loadKernels: () => {
    const module = loadModule(cuda);
    const kernel = (kind: keyof typeof KERNEL_NAMES) => cuda.get("cuModuleGetFunction", module, KERNEL_NAMES[kind]);
    const kernels = { fill: kernel("fill"), check: kernel("check"), scan: kernel("scan") };
    return (kind, groups, parameters) => {
      const size = [groups, 1, 1, THREADS_PER_GROUP, 1, 1] as const;
      cuda.call("cuLaunchKernel", [kernels[kind], ...size, 0, ON_DEFAULT_STREAM, parameters, null]);
      cuda.call("cuCtxSynchronize", []);
    };
  },
});

/** Loads the GPU kernels, whose PTX text NVIDIA's driver compiles. If the driver refuses the PTX text, the error contains the compiler's message. */
function loadModule(cuda: Cuda): bigint {
  const log = Buffer.alloc(LOG_BYTES);
  const options = Buffer.alloc(8);
  options.writeUInt32LE(ERROR_LOG_BUFFER);
  options.writeUInt32LE(ERROR_LOG_BYTES, 4);
  const module = Buffer.alloc(8);
  try {
    cuda.call("cuModuleLoadDataEx", [module, kernelsPtx(), 2, options, [log, BigInt(log.length)]]);
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    const said = log.toString("latin1").split("\0", 1)[0]?.trim().slice(0, 200);
    throw new DriverError(error.call, error.result, error.fault, said);
  }
  return module.readBigUInt64LE();
}
