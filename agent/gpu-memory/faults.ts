import { GPU_FAULTS, type GpuFault } from "../../shared/gpu-faults.ts";

/** An error of a GPU with a code of the closed set. The message of the error says what happened, to which GPU, and what to do next. */
export class GpuFaultError extends Error {
  override readonly name = "GpuFaultError";
  readonly fault: GpuFault;
  constructor(fault: GpuFault, what: string) {
    super(`${what} ${GPU_FAULTS[fault]}`);
    this.fault = fault;
  }
}

/** A call of the driver that returned an error number. */
export class CudaError extends Error {
  override readonly name = "CudaError";
  readonly call: string;
  readonly result: number;
  constructor(call: string, result: number, detail = "") {
    super(`${call} returned ${result}${detail === "" ? "" : ` (${detail})`}.`);
    this.call = call;
    this.result = result;
  }
}

export const OUT_OF_MEMORY = 2;

/** The error numbers of CUDA's driver interface (`CUresult`) that tell what is wrong. Every other number is `driver_refused`. */
const FAULT_OF_RESULT: Readonly<Record<number, GpuFault>> = {
  [OUT_OF_MEMORY]: "gpu_busy",
  34: "driver_missing", // a stub library without a driver
  46: "gpu_busy", // exclusive compute mode, or held by another process
  100: "gpu_missing",
  101: "gpu_missing",
  200: "kernels_refused",
  209: "kernels_refused",
  214: "memory_fault", // an ECC error that cannot be corrected
  218: "kernels_refused",
  221: "kernels_refused",
  222: "kernels_refused",
  223: "kernels_refused",
  226: "memory_fault", // a contained memory error
  700: "memory_fault",
  719: "memory_fault",
  802: "fabric_down",
  803: "driver_mismatch",
  805: "gpu_busy", // 805 to 810 are errors of MPS, through which another process uses the GPU
  806: "gpu_busy",
  807: "gpu_busy",
  808: "gpu_busy",
  809: "gpu_busy",
  810: "gpu_busy",
};

export const faultOfResult = (result: number): GpuFault => FAULT_OF_RESULT[result] ?? "driver_refused";

/** Turns each error of a GPU into one with a code of the closed set. Errors of our own code stay as they are. */
export function asGpuFault(error: unknown, uuid: string): unknown {
  if (!(error instanceof CudaError)) return error;
  return new GpuFaultError(faultOfResult(error.result), `GPU ${uuid}: ${error.message}`);
}
