import { GPU_FAULTS, type GpuFault } from "../../shared/gpu-faults.ts";

/** The message of a GPU fault says what happened to which GPU, and what to do next. */
export class GpuFaultError extends Error {
  override readonly name = "GpuFaultError";
  readonly fault: GpuFault;
  constructor(fault: GpuFault, what: string) {
    super(`${what} ${GPU_FAULTS[fault]}`);
    this.fault = fault;
  }
}

/** Thrown when a call of a GPU's driver returns an error number, with the GPU fault that the number stands for. */
export class DriverError extends Error {
  override readonly name = "DriverError";
  readonly call: string;
  readonly result: number;
  readonly fault: GpuFault;
  constructor(call: string, result: number, fault: GpuFault, detail = "") {
    super(`${call} returned ${result}${detail === "" ? "" : ` (${detail})`}.`);
    this.call = call;
    this.result = result;
    this.fault = fault;
  }
}

/**
 * Turns a `DriverError` of a GPU into a `GpuFaultError` with a code from the closed set `GpuFault`. `asGpuFault` returns every error unchanged that
 * is no `DriverError`.
 */
export const asGpuFault = (error: unknown, uuid: string): unknown =>
  error instanceof DriverError ? new GpuFaultError(error.fault, `GPU ${uuid}: ${error.message}`) : error;
