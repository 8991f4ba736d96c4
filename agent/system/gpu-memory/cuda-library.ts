import koffi from "koffi";
import { CudaError, GpuFaultError } from "../../gpu-memory/faults.ts";
import { messageOf } from "../../message-of.ts";

/**
 * The calls of NVIDIA's driver library that a worker process uses. A call's suffix, for example `_v2`, is the version that the worker process
 * expects. A worker process reads the results of driver calls from buffers, and passes handles and device addresses as 64-bit numbers.
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
type Value = number | bigint | string | Buffer | null | readonly (Buffer | bigint)[];

const NVML_CALLS = {
  nvmlInit_v2: "int nvmlInit_v2()",
  nvmlDeviceGetHandleByUUID: "int nvmlDeviceGetHandleByUUID(const char *uuid, void *device)",
  nvmlDeviceGetMemoryInfo_v2: "int nvmlDeviceGetMemoryInfo_v2(uint64_t device, void *info)",
} as const;

export interface Cuda {
  /** Calls NVIDIA's driver, and throws `CudaError` unless the driver returns 0 or one of the results in `allowed`. */
  call(name: CudaCall, args: readonly Value[], allowed?: readonly number[]): number;
  /** Makes a driver call that fills a buffer of eight bytes, and returns the handle, address or size in the buffer. */
  get(name: CudaCall, ...args: readonly Value[]): bigint;
}

type Loaded<C extends string> = Readonly<Record<C, (...args: readonly Value[]) => number>>;

/** Loads NVIDIA's driver library by its full path, because a tenant may have left another library in the loader's search path. */
export function openCuda(path: string): Cuda {
  const calls = load(path, CUDA_CALLS);
  const call: Cuda["call"] = (name, args, allowed = []) => {
    const result = calls[name](...args);
    if (result !== 0 && !allowed.includes(result)) throw new CudaError(name, result);
    return result;
  };
  return {
    call,
    get: (name, ...args) => {
      const out = Buffer.alloc(8);
      call(name, [out, ...args]);
      return out.readBigUInt64LE();
    },
  };
}

function load<C extends string>(path: string, prototypes: Readonly<Record<C, string>>): Loaded<C> {
  let library: ReturnType<typeof koffi.load>;
  try {
    library = koffi.load(path);
  } catch (error) {
    throw new GpuFaultError("driver_missing", `The library ${path} cannot be loaded (${messageOf(error)}).`);
  }
  // `load` looks up the driver calls one by one, so that the error message names the call that an old driver lacks.
  const find = (name: C) => {
    try {
      return library.func(prototypes[name]);
    } catch (error) {
      throw new GpuFaultError("driver_too_old", `The library ${path} has no ${name} (${messageOf(error)}).`);
    }
  };
  return Object.fromEntries(Object.keys(prototypes).map((name) => [name, find(name as C)])) as unknown as Loaded<C>;
}

/** The C structure nvmlMemory_v2_t contains its version, which includes the structure's size, and the memory sizes total, reserved, free and used. */
const MEMORY_INFO_BYTES = 40;
const MEMORY_INFO_VERSION = MEMORY_INFO_BYTES | (2 << 24);

/**
 * Reads the GPU's total and reserved memory from NVIDIA's management library. Returns null if NVIDIA's management library is missing or does not
 * answer. The overwriting of the GPU's memory does not need the total and reserved sizes.
 */
export function readNvmlMemory(path: string, uuid: string): { totalBytes: number; reservedBytes: number } | null {
  try {
    const calls = load(path, NVML_CALLS);
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
