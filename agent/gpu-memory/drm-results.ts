import type { GpuFault } from "../../shared/gpu-faults.ts";

/** The error numbers ENOMEM and ENOSPC of Linux, with which a DRM driver says that it has no memory for a buffer. */
export const NO_MEMORY: readonly number[] = [12, 28];
/** The error numbers EINTR and EAGAIN of Linux, after which the worker process sends its request once more. */
export const AGAIN: readonly number[] = [4, 11];

/**
 * For each error number of Linux that shows what is wrong with a GPU, the code of the GPU fault. Every error number of Linux that `FAULT_OF_ERRNO`
 * does not contain stands for the fault `driver_refused`.
 */
const FAULT_OF_ERRNO: Readonly<Record<number, GpuFault>> = {
  2: "gpu_missing", // ENOENT means that the device file of the GPU is gone.
  6: "gpu_missing", // ENXIO
  16: "gpu_busy", // EBUSY
  19: "gpu_missing", // ENODEV means that the GPU has left the PCI bus.
  12: "gpu_busy",
  28: "gpu_busy",
};

export const faultOfErrno = (errno: number): GpuFault => FAULT_OF_ERRNO[errno] ?? "driver_refused";
