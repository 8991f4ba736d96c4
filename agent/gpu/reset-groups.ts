import type { GpuState } from "./gpu-state.ts";

/** GPUs that are reset together, in one call of the vendor's tool (decision C3). */
export interface ResetGroup {
  /** The name of the hive or of the NVSwitch baseboard, or the PCI address of a GPU that is reset alone. */
  readonly name: string;
  readonly gpus: readonly GpuState[];
}

/**
 * Groups the GPUs of a host: all GPUs on NVSwitches, each XGMI hive, and every other GPU alone. If one GPU of an NVSwitch host does not tell its
 * fabric, it may still be linked, so it belongs to the group of the others.
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
