import { MOST_GPUS } from "../../shared/gpu-memory.ts";
import type { GPU_LEVELS } from "../../shared/sanitization-record.ts";

/** The facts about a host's GPUs from which the hub tells whether the agent can overwrite their memory. */
export interface GpuClaimFacts {
  /** The level of GPU memory cleaning that the node's profile requires, or null for a node without a profile. */
  readonly level: (typeof GPU_LEVELS)[number] | null;
  /** The vendor that the node's SKU names, or null if the hub does not know the SKU. */
  readonly vendor: "amd" | "nvidia" | "none" | null;
  readonly gpus: number;
}

/**
 * Returns the reason why no host with these GPUs can reach the level of GPU memory cleaning that its profile requires (decision C2).
 * `whyClaimImpossible` returns null if a host can reach the required level of GPU memory cleaning. Every host can reach the level `reset_only`, which
 * requires no overwrite, and a host without GPUs has no GPU memory to clean.
 */
export function whyClaimImpossible({ level, vendor, gpus }: GpuClaimFacts): string | null {
  if (level === null || level === "reset_only" || gpus === 0) return null;
  if (vendor !== "nvidia" && vendor !== "amd")
    return `Muster overwrites the memory of NVIDIA and AMD GPUs only: the SKU says ${vendor ?? "nothing"}`;
  return gpus > MOST_GPUS ? `Muster overwrites at most ${MOST_GPUS} GPUs of a host: this host has ${gpus}` : null;
}
