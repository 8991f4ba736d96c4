import type { GpuState } from "./gpu-state.ts";

/** A group of GPUs that the agent resets together, in one call of the vendor's tool (decision C3). */
export interface ResetGroup {
  /** `nvswitch`, the name of an XGMI hive, or the PCI address of a GPU that the agent resets alone. */
  readonly name: string;
  readonly gpus: readonly GpuState[];
}

/**
 * Groups the GPUs of a host for resets: all GPUs on NVSwitches together, the GPUs of each XGMI hive, and every other GPU alone. On an NVSwitch host,
 * a GPU that does not tell its fabric may still be linked, so `resetGroups` puts it into the group `nvswitch`.
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
