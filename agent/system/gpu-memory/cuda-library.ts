import { faultOfCuda } from "../../gpu-memory/cuda-results.ts";
import { GpuFaultError } from "../../gpu-memory/faults.ts";
import { type DriverCalls, driverCalls, loadLibrary } from "./driver-library.ts";

/**
 * The calls of NVIDIA's driver library that a worker process uses. The suffix of a driver call, for example `_v2`, is the version that the worker
 * process expects. Driver calls return results in buffers, and take handles and device addresses as 64-bit numbers.
 */
const CUDA_CALLS = {
  cuInit: "int cuInit(unsigned int flags)",
  cuDriverGetVersion: "int cuDriverGetVersion(void *version)",
  cuDeviceGetCount: "int cuDeviceGetCount(void *count)",
  cuDeviceGet: "int cuDeviceGet(void *device, int ordinal)",
  cuDeviceGetUuid_v2: "int cuDeviceGetUuid_v2(void *uuid, int device)",
  cuDeviceGetPCIBusId: "int cuDeviceGetPCIBusId(void *text, int length, int device)",
  cuDeviceTotalMem_v2: "int cuDeviceTotalMem_v2(void *bytes, int device)",
  cuDevicePrimaryCtxRetain: "int cuDevicePrimaryCtxRetain(void *context, int device)",
  cuCtxSetCurrent: "int cuCtxSetCurrent(uint64_t context)",
  cuCtxSynchronize: "int cuCtxSynchronize()",
  cuMemAlloc_v2: "int cuMemAlloc_v2(void *address, size_t bytes)",
  cuMemFree_v2: "int cuMemFree_v2(uint64_t address)",
  cuMemsetD32Async: "int cuMemsetD32Async(uint64_t address, unsigned int value, size_t words, uint64_t stream)",
  cuMemcpyDtoH_v2: "int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)",
  cuMemcpyHtoD_v2: "int cuMemcpyHtoD_v2(uint64_t to, void *from, size_t bytes)",
  cuModuleLoadDataEx:
    "int cuModuleLoadDataEx(void *module, const char *text, unsigned int count, void *options, void **values)",
  cuModuleGetFunction: "int cuModuleGetFunction(void *function, uint64_t module, const char *name)",
  cuLaunchKernel:
    "int cuLaunchKernel(uint64_t function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, uint64_t stream, void **parameters, void **extra)",
} as const;
type CudaCall = keyof typeof CUDA_CALLS;

const NVML_CALLS = {
  nvmlInit_v2: "int nvmlInit_v2()",
  nvmlDeviceGetHandleByUUID: "int nvmlDeviceGetHandleByUUID(const char *uuid, void *device)",
  nvmlDeviceGetMemoryInfo_v2: "int nvmlDeviceGetMemoryInfo_v2(uint64_t device, void *info)",
} as const;

export type Cuda = DriverCalls<CudaCall>;

/** Loads NVIDIA's driver library by its full path, because a tenant may have put another library into the search path. */
export const openCuda = (path: string): Cuda => driverCalls(loadLibrary(path, CUDA_CALLS), faultOfCuda);

/** The size of the C structure nvmlMemory_v2_t: its version, and the memory sizes total, reserved, free and used. */
const MEMORY_INFO_BYTES = 40;
const MEMORY_INFO_VERSION = MEMORY_INFO_BYTES | (2 << 24);

/**
 * Reads the GPU's total and reserved memory from NVIDIA's management library. Returns null if NVIDIA's management library is missing or does not
 * answer, because the overwrite of GPU memory does not need the memory sizes.
 */
export function readNvmlMemory(path: string, uuid: string): { totalBytes: number; reservedBytes: number } | null {
  try {
    const calls = loadLibrary(path, NVML_CALLS);
    const device = Buffer.alloc(8);
    const info = Buffer.alloc(MEMORY_INFO_BYTES);
    info.writeUInt32LE(MEMORY_INFO_VERSION);
    if (calls.nvmlInit_v2() !== 0) return null;
    if (calls.nvmlDeviceGetHandleByUUID(uuid, device) !== 0) return null;
    if (calls.nvmlDeviceGetMemoryInfo_v2(device.readBigUInt64LE(), info) !== 0) return null;
    return { totalBytes: Number(info.readBigUInt64LE(8)), reservedBytes: Number(info.readBigUInt64LE(16)) };
  } catch (error) {
    if (error instanceof GpuFaultError) return null;
    throw error;
  }
}
