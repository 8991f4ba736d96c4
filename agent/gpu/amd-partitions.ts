import { join } from "node:path";
import type { AmdFile } from "./amd-report.ts";
import { callDriver } from "./gpu-tool.ts";
import type { Scrub } from "./scrub-state.ts";

/**
 * For each partition setting of an AMD GPU, the mode in which the GPU is one whole device. To set a partition mode, the agent writes the mode as text
 * to the amdgpu driver's file.
 */
const WHOLE: Readonly<Record<string, { readonly mode: string; readonly file: AmdFile }>> = {
  compute_partition: { mode: "SPX", file: "current_compute_partition" },
  memory_partition: { mode: "NPS1", file: "current_memory_partition" },
};

/**
 * Ends the partitions into which a tenant has divided AMD GPUs. `endPartitions` ignores a driver's refusal of a partition mode, because the
 * comparison after the GPU reset reads the partitions once more.
 */
export async function endPartitions({ system, timing, before }: Scrub): Promise<void> {
  for (const { pci, settings } of before)
    for (const [name, { mode, file }] of Object.entries(WHOLE)) {
      const now = settings[name];
      if (now === undefined || now === null || now === mode) continue;
      const path = join(system.root, "/sys/bus/pci/devices", pci, file);
      const options = { timeoutMs: timing.resetMs, graceMs: timing.graceMs, input: `${mode}\n` };
      await callDriver(system, "tee", [path], options);
    }
}
