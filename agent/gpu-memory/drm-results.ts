import type { GpuFault } from "../../shared/gpu-faults.ts";

/** The error numbers of Linux with which a DRM driver says that it has no memory for a buffer: ENOMEM and ENOSPC. */
export const NO_MEMORY: readonly number[] = [12, 28];
/** The error numbers of Linux after which a request is sent again: EINTR and EAGAIN. */
export const AGAIN: readonly number[] = [4, 11];

/** For each error number of Linux that tells what is wrong with a GPU, the code of the GPU fault. Every other number stands for `driver_refused`. */
const FAULT_OF_ERRNO: Readonly<Record<number, GpuFault>> = {
  2: "gpu_missing", // ENOENT: the device file is gone.
  6: "gpu_missing", // ENXIO
  16: "gpu_busy", // EBUSY
  19: "gpu_missing", // ENODEV: the GPU left the bus.
  12: "gpu_busy",
  28: "gpu_busy",
};

export const faultOfErrno = (errno: number): GpuFault => FAULT_OF_ERRNO[errno] ?? "driver_refused";
