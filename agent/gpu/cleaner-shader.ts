import { join } from "node:path";
import { gpuStep } from "./gpu-steps.ts";
import { callDriver } from "./gpu-tool.ts";
import type { Scrub } from "./scrub-state.ts";

/** The partition whose local memory and registers the cleaner shader clears; a GPU in the partition mode SPX has only partition 0. */
const PARTITION = "0\n";

/**
 * Clears the local memory and the registers of AMD GPUs with the cleaner shader of AMD's driver. If a GPU or its driver has no cleaner shader, the
 * step `gpu_cleaner_shader` is `unsupported`. NVIDIA GPUs get no step `gpu_cleaner_shader`, because NVIDIA's driver has no cleaner shader.
 */
export async function runCleanerShader({ system, timing, input, run, after, steps }: Scrub): Promise<void> {
  if (input.vendor !== "amd") return;
  run.progress({ step: "gpu_cleaner_shader" });
  for (const { pci } of after) {
    const path = `/sys/bus/pci/devices/${pci}/run_cleaner_shader`;
    if (!(await system.isPresent(path))) {
      steps.push(gpuStep("gpu_cleaner_shader", pci, "unsupported", "The driver has no cleaner shader for this GPU."));
      continue;
    }
    const options = { timeoutMs: timing.readMs, graceMs: timing.graceMs, input: PARTITION };
    const ran = await callDriver(system, "tee", [join(system.root, path)], options);
    const refused = /not supported|invalid argument/i.test(ran.said);
    const outcome = ran.exitCode === 0 ? "ok" : refused ? "unsupported" : "failed";
    const message =
      outcome === "ok" ? "The shader has cleared local memory and registers." : `The shader did not run: ${ran.said}`;
    steps.push(gpuStep("gpu_cleaner_shader", pci, outcome, message, { exit_code: ran.exitCode }));
  }
}
