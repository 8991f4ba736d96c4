import type { GpuFault } from "../../shared/gpu-faults.ts";

export const CUDA_OUT_OF_MEMORY = 2;

/**
 * The GPU faults by error number of CUDA's driver interface (`CUresult`). An error number that `FAULT_OF_CUDA` does not contain stands for the fault
 * `driver_refused`.
 */
const FAULT_OF_CUDA: Readonly<Record<number, GpuFault>> = {
  [CUDA_OUT_OF_MEMORY]: "gpu_busy",
  34: "driver_missing", // The CUDA library is a stub, which has the calls of the library but no driver.
  46: "gpu_busy", // The GPU is in exclusive compute mode, or another process holds the GPU.
  100: "gpu_missing",
  101: "gpu_missing",
  200: "kernels_refused",
  209: "kernels_refused",
  214: "memory_fault", // The GPU reports an ECC error that cannot be corrected.
  218: "kernels_refused",
  221: "kernels_refused",
  222: "kernels_refused",
  223: "kernels_refused",
  226: "memory_fault",
  700: "memory_fault",
  719: "memory_fault",
  802: "fabric_down",
  803: "driver_mismatch",
  805: "gpu_busy", // The error numbers 805 to 810 come from MPS, through which another process uses the GPU.
  806: "gpu_busy",
  807: "gpu_busy",
  808: "gpu_busy",
  809: "gpu_busy",
  810: "gpu_busy",
};

export const faultOfCuda = (result: number): GpuFault => FAULT_OF_CUDA[result] ?? "driver_refused";
