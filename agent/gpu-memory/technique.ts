import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";

/**
 * The technique by which a worker process overwrites the memory of a GPU. If the host has none of the drivers by which a worker process could
 * overwrite the GPU's memory, the agent only resets the GPU.
 */
export type Technique = "cuda" | "hip" | "kernel_clear" | "reset_only";

/** The parts of the GPUs' drivers that a worker process finds on its host. */
export interface FoundDrivers {
  /** True if the host has NVIDIA's driver library. */
  readonly cuda: boolean;
  /** True if the host has AMD's library HIP. */
  readonly hip: boolean;
  /** True if the host has the amdgpu driver's device file for the GPU, through which the kernel gives out buffers that it clears. */
  readonly renderNode: boolean;
}

/** For each vendor the techniques of overwriting GPU memory, from the strongest to the weakest, each with the driver that it needs. */
const TECHNIQUES: Readonly<Record<GpuVendor, readonly (readonly [keyof FoundDrivers, Technique])[]>> = {
  nvidia: [["cuda", "cuda"]],
  amd: [
    ["hip", "hip"],
    ["renderNode", "kernel_clear"],
  ],
};

/**
 * Chooses the strongest technique of overwriting GPU memory whose driver the host has. If the chosen technique fails, the worker process does not try
 * a weaker technique of overwriting GPU memory, because an operator can repair an installed driver.
 */
export const techniqueOf = (vendor: GpuVendor, found: FoundDrivers): Technique =>
  TECHNIQUES[vendor].find(([needs]) => found[needs])?.[1] ?? "reset_only";
