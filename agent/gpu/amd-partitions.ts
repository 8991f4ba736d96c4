import { join } from "node:path";
import type { AmdFile } from "./amd-report.ts";
import { callDriver } from "./gpu-tool.ts";
import type { Scrub } from "./scrub-state.ts";

/** The modes in which an AMD GPU is one whole device, each with the amdgpu driver's file that sets the mode. */
const WHOLE: Readonly<Record<string, { readonly mode: string; readonly file: AmdFile }>> = {
  compute_partition: { mode: "SPX", file: "current_compute_partition" },
  memory_partition: { mode: "NPS1", file: "current_memory_partition" },
};

/**
 * Ends the partitions into which a tenant has divided AMD GPUs. The comparison of GPU states after the reset notices a partition that the driver
 * refused to end.
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
