import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";

/** The way in which a worker process overwrites the memory of a GPU. On a host without any way, the GPU is only reset. */
export type Technique = "cuda" | "hip" | "kernel_clear" | "reset_only";

/** What of the GPUs' drivers a worker process finds on its host. */
export interface FoundDrivers {
  /** NVIDIA's driver library. */
  readonly cuda: boolean;
  /** AMD's library HIP. */
  readonly hip: boolean;
  /** The amdgpu driver's device file for the GPU of the order, through which the kernel gives buffers that it clears. */
  readonly renderNode: boolean;
}

/** For each vendor the techniques from the strongest to the weakest, each with the driver that it needs. */
const TECHNIQUES: Readonly<Record<GpuVendor, readonly (readonly [keyof FoundDrivers, Technique])[]>> = {
  nvidia: [["cuda", "cuda"]],
  amd: [
    ["hip", "hip"],
    ["renderNode", "kernel_clear"],
  ],
};

/**
 * Chooses the strongest technique whose driver is on the host. A worker process does not fall back to a weaker technique if the stronger one fails,
 * because an operator can mend a driver that is installed.
 */
export const techniqueOf = (vendor: GpuVendor, found: FoundDrivers): Technique =>
  TECHNIQUES[vendor].find(([needs]) => found[needs])?.[1] ?? "reset_only";
