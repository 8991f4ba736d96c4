import type { GpuFault } from "../../shared/gpu-faults.ts";

export const HIP_OUT_OF_MEMORY = 2;

/**
 * The code of the GPU fault for each error number of AMD's library HIP (`hipError_t`). Every error number of HIP that `FAULT_OF_HIP` does not contain
 * stands for the fault `driver_refused`.
 */
const FAULT_OF_HIP: Readonly<Record<number, GpuFault>> = {
  [HIP_OUT_OF_MEMORY]: "gpu_busy",
  35: "driver_mismatch", // The kernel's driver is older than the library.
  98: "kernels_refused",
  100: "gpu_missing",
  101: "gpu_missing",
  200: "kernels_refused",
  209: "kernels_refused",
  214: "memory_fault", // The GPU reports an ECC error that cannot be corrected.
  218: "kernels_refused",
  300: "kernels_refused",
  700: "memory_fault",
  719: "memory_fault",
};

export const faultOfHip = (result: number): GpuFault => FAULT_OF_HIP[result] ?? "driver_refused";
