import koffi from "koffi";
import { faultOfHip } from "../../gpu-memory/hip-results.ts";
import { type DriverCalls, driverCalls, loadLibrary } from "./driver-library.ts";

/**
 * The calls of AMD's library HIP that a worker process uses. A worker process reads the results of the calls from buffers, and passes handles and
 * device addresses as 64-bit numbers.
 */
const HIP_CALLS = {
  hipInit: "int hipInit(unsigned int flags)",
  hipDriverGetVersion: "int hipDriverGetVersion(void *version)",
  hipGetDeviceCount: "int hipGetDeviceCount(void *count)",
  hipSetDevice: "int hipSetDevice(int device)",
  hipDeviceGetPCIBusId: "int hipDeviceGetPCIBusId(void *text, int length, int device)",
  hipDeviceTotalMem: "int hipDeviceTotalMem(void *bytes, int device)",
  hipDeviceSynchronize: "int hipDeviceSynchronize()",
  hipMalloc: "int hipMalloc(void *address, size_t bytes)",
  hipFree: "int hipFree(uint64_t address)",
  hipMemsetD32: "int hipMemsetD32(uint64_t address, int value, size_t words)",
  hipMemcpyDtoH: "int hipMemcpyDtoH(void *to, uint64_t from, size_t bytes)",
  hipMemcpyHtoD: "int hipMemcpyHtoD(uint64_t to, void *from, size_t bytes)",
  hipModuleLoadData: "int hipModuleLoadData(void *module, void *code)",
  hipModuleGetFunction: "int hipModuleGetFunction(void *function, uint64_t module, const char *name)",
  hipModuleLaunchKernel:
    "int hipModuleLaunchKernel(uint64_t function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, uint64_t stream, void **parameters, void **extra)",
} as const;
export type Hip = DriverCalls<keyof typeof HIP_CALLS>;

/** The calls of AMD's compiler library hiprtc, which compiles the GPU kernels on the host. */
const HIPRTC_CALLS = {
  hiprtcCreateProgram:
    "int hiprtcCreateProgram(void *program, const char *text, const char *name, int headers, void **texts, void **names)",
  hiprtcCompileProgram: "int hiprtcCompileProgram(uint64_t program, int count, void **options)",
  hiprtcGetProgramLogSize: "int hiprtcGetProgramLogSize(uint64_t program, void *bytes)",
  hiprtcGetProgramLog: "int hiprtcGetProgramLog(uint64_t program, void *log)",
  hiprtcGetCodeSize: "int hiprtcGetCodeSize(uint64_t program, void *bytes)",
  hiprtcGetCode: "int hiprtcGetCode(uint64_t program, void *code)",
} as const;
export type Hiprtc = DriverCalls<keyof typeof HIPRTC_CALLS>;

/** A compiler needs more stack than koffi's usual 2 MiB for a call. */
const STACK_BYTES = 16 * 2 ** 20;

/** Loads AMD's library HIP by its full path, because a tenant may have left another library in the loader's search path. */
export function openHip(path: string): Hip {
  koffi.config({ sync_stack_size: STACK_BYTES });
  return driverCalls(loadLibrary(path, HIP_CALLS), faultOfHip);
}

/** Loads AMD's compiler library by its full path. Each error of the compiler means that the GPU cannot run the kernels. */
export const openHiprtc = (path: string): Hiprtc =>
  driverCalls(loadLibrary(path, HIPRTC_CALLS), () => "kernels_refused");
