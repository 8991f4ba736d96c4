import { join } from "node:path";
import { type GpuStep, gpuStep, named } from "./gpu-steps.ts";
import { callDriver } from "./gpu-tool.ts";
import {
  type DriverSwitch,
  GPU_FOLDER,
  PARAMS_FILE,
  registryFile,
  switchesInParams,
  switchesInRegistry,
  turnsScrubOff,
} from "./nvidia-switches.ts";
import type { Scrub } from "./scrub-state.ts";

/**
 * Checks the registry switches of NVIDIA's driver, which AMD's driver does not have. The step `gpu_switches` fails if a switch keeps NVIDIA's driver
 * from zeroing freed GPU memory. Registry switches that do not concern freed memory do not fail the step `gpu_switches` and are only in its evidence,
 * because operators set them too.
 */
export async function switchesStep(scrub: Scrub): Promise<GpuStep | null> {
  if (scrub.input.vendor !== "nvidia") return null;
  const found = await readSwitches(scrub);
  if (typeof found === "string") return gpuStep("gpu_switches", "host", "failed", `state_unreadable: ${found}`);
  const off = found.filter(turnsScrubOff);
  const names = found.map(({ scope, name, value }) => `${name}=${value}${scope === "all" ? "" : ` (${scope})`}`);
  const message =
    off.length > 0
      ? `The driver does not zero freed memory: ${named(off.map(({ name, value }) => `${name}=${value}`))}. Remove the switch from /etc/modprobe.d and reload the driver.`
      : "The driver zeroes freed memory.";
  return gpuStep("gpu_switches", "host", off.length > 0 ? "failed" : "ok", message, {
    count: found.length,
    switches: names.join(" "),
  });
}

/**
 * Returns the registry switches of NVIDIA's driver, or why they cannot be read. The separate process `cat` reads the files of NVIDIA's driver,
 * because a read may hang in the driver.
 */
async function readSwitches({ system, timing }: Scrub): Promise<readonly DriverSwitch[] | string> {
  const read = async (path: string): Promise<string | null> => {
    const options = { timeoutMs: timing.readMs, graceMs: timing.graceMs };
    const ran = await callDriver(system, "cat", [join(system.root, path)], options);
    return ran.exitCode === 0 ? ran.stdout : null;
  };
  const params = await read(PARAMS_FILE);
  const switches = params === null ? null : switchesInParams(params);
  if (switches === null) return `${PARAMS_FILE} has no readable list of switches.`;
  const found = [...switches];
  for (const gpu of await system.list(GPU_FOLDER)) {
    const text = await read(registryFile(gpu));
    if (text === null) return `${registryFile(gpu)} cannot be read.`;
    found.push(...switchesInRegistry(gpu, text));
  }
  return found;
}
