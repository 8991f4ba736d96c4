import { GPU_FAULTS, type GpuFault } from "../../shared/gpu-faults.ts";
import { clearSampleOf, type GpuClear } from "../../shared/gpu-memory.ts";

/**
 * How the clearing of one GPU's memory by the kernel's driver ended. If nobody read a sample of cleared memory, the outcome is a fault, because
 * nothing but the sample shows that the driver cleared anything.
 */
export function outcomeOfClear(clear: GpuClear): { readonly fault: GpuFault | null; readonly message: string } {
  const { uuid, cleared_bytes: cleared, total_bytes: total, bar_bytes: bar, sampled_bytes: read } = clear;
  const told = (fault: GpuFault, what: string) => ({ fault, message: `${what} ${GPU_FAULTS[fault]}` });
  if (clear.nonzero_units > 0)
    return told(
      "not_cleared",
      `${clear.nonzero_units} units of 16 bytes in a sample of ${read} bytes of GPU ${uuid} were not zero.`,
    );
  if (read < clearSampleOf(cleared))
    return told(
      "bar_too_small",
      `The processor of the host can read ${bar ?? "an unknown number of"} of ${total} bytes of GPU ${uuid}, so nobody read the memory that the amdgpu driver cleared.`,
    );
  return {
    fault: null,
    message: `The amdgpu driver cleared ${cleared} of ${total} bytes of GPU ${uuid}, and a sample of ${read} bytes was zero.`,
  };
}
