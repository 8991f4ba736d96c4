import type { GpuState } from "./gpu-state.ts";

/** A group of GPUs that one call of the vendor's tool resets together (decision C3). */
export interface ResetGroup {
  /**
   * The name of a group of GPUs that are reset together: `nvswitch`, the name of an XGMI hive, or the PCI address of a GPU that the agent resets
   * alone.
   */
  readonly name: string;
  readonly gpus: readonly GpuState[];
}

/**
 * Groups GPUs for resets: all GPUs on NVSwitches, the GPUs of each XGMI hive, and every other GPU alone. On an NVSwitch host, a GPU whose fabric is
 * not reported may still be linked, so it counts as a GPU on NVSwitches.
 */
export function resetGroups(gpus: readonly GpuState[]): readonly ResetGroup[] {
  const switched = gpus.some(({ group }) => group === "nvswitch");
  const groups = new Map<string, GpuState[]>();
  for (const gpu of gpus) {
    const name = switched ? "nvswitch" : (gpu.group ?? gpu.pci);
    groups.set(name, [...(groups.get(name) ?? []), gpu]);
  }
  return [...groups].map(([name, members]) => ({ name, gpus: members }));
}
