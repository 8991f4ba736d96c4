import type { GpuNeed } from "../../shared/tasks/gpu-scrub.ts";
import type { GpuAction } from "./gpu-state.ts";

export interface GpuEnd {
  readonly isClean: boolean;
  /** Whether the kernel sees the GPU on the PCI bus. */
  readonly isOnBus: boolean;
  readonly isTried: boolean;
  readonly recommends: GpuAction;
}

/**
 * Says whether the host needs a reboot or a power cycle, neither of which the agent can carry out; the GPU with the strongest need decides. A GPU
 * that has left the PCI bus comes back only after a power cycle. A GPU that is not clean after an attempt to reset it needs a reboot. Without an
 * attempt to reset a GPU, the result is `none` unless the driver recommends a reboot or a power cycle, because a person must decide about the GPU.
 */
export function needOf(gpus: readonly GpuEnd[], isWedged: boolean): GpuNeed {
  const needs = gpus.map(({ isClean, isOnBus, isTried, recommends }): GpuNeed => {
    if (!isOnBus || recommends === "power_cycle") return "power_cycle";
    if (isClean) return "none";
    return isTried || recommends === "reboot" ? "reboot" : "none";
  });
  if (needs.includes("power_cycle")) return "power_cycle";
  return isWedged || needs.includes("reboot") ? "reboot" : "none";
}
