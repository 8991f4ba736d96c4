import type { GpuNeed } from "../../shared/tasks/gpu-scrub.ts";
import type { GpuAction } from "./gpu-state.ts";

/** The facts about one GPU at the end of a GPU cleaning. */
export interface GpuEnd {
  readonly isClean: boolean;
  /** Whether the kernel sees the GPU on the PCI bus. */
  readonly isOnBus: boolean;
  /** Whether the agent tried to reset the GPU, with or without success. */
  readonly isTried: boolean;
  readonly recommends: GpuAction;
}

/**
 * Says whether the host needs a reboot or a power cycle, which the agent cannot do: the strongest need of the host's GPUs counts. A GPU that has left
 * the PCI bus returns only after a power cycle. A GPU that is not clean although the agent tried to reset it needs a reboot. For a GPU that the agent
 * did not try to reset, a person must decide, so the need is `none`.
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
