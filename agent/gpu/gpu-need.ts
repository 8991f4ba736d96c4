import type { GpuNeed } from "../../shared/tasks/gpu-scrub.ts";
import type { GpuAction } from "./gpu-state.ts";

/** What is known about one GPU at the end of a cleaning. */
export interface GpuEnd {
  readonly isClean: boolean;
  /** The kernel sees the GPU on the PCI bus. */
  readonly isOnBus: boolean;
  /** A means of the agent was tried for the GPU, whether or not it worked. */
  readonly isTried: boolean;
  readonly recommends: GpuAction;
}

/**
 * Says what the host needs, which is more than the agent can do: the strongest need of its GPUs. A GPU that has left the bus comes back only after
 * a power cycle. A GPU that is not clean although the agent tried its means needs a reboot. A GPU for which nothing was tried needs a person first.
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
