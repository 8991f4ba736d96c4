import type { GpuDevice } from "../../gpu-memory/device.ts";
import { DriverError } from "../../gpu-memory/faults.ts";
import { CopyDevice } from "./copy-device.ts";
import type { DriverPort } from "./driver-port.ts";
import { KernelDevice } from "./kernel-device.ts";

const MOST_TEXT = 256;

/**
 * A GPU's driver compiles GPU kernels with a separate library, which the host may lack. If the driver refuses the kernels, the host's processor
 * computes the ChaCha20 stream and copies the stream to the GPU and back. An overwrite of GPU memory by copies takes longer than one by GPU kernels,
 * but proves equally that the memory contains the ChaCha20 stream.
 */
export function openDevice(
  port: DriverPort,
  seed: string,
): { readonly device: GpuDevice; readonly kernelsError: string | null } {
  try {
    return { device: new KernelDevice(port, seed), kernelsError: null };
  } catch (error) {
    if (!(error instanceof DriverError) || error.fault !== "kernels_refused") throw error;
    return { device: new CopyDevice(port, seed), kernelsError: error.message.slice(0, MOST_TEXT) };
  }
}
