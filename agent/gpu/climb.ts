import { setTimeout as sleep } from "node:timers/promises";
import { endPartitions } from "./amd-partitions.ts";
import { endPersistence, kernelUsers, stopService, unloadModules } from "./free-gpus.ts";
import { loadModules, startServices } from "./gpu-give-back.ts";
import type { GpuState } from "./gpu-state.ts";
import { type GpuStep, gpuStep, named } from "./gpu-steps.ts";
import { DriverWedged, StateUnreadable } from "./gpu-tool.ts";
import { whyNotReset } from "./gpu-verify.ts";
import { resetGroups } from "./reset-groups.ts";
import type { ResetResult, Scrub } from "./scrub-state.ts";

/** Resets the host's GPUs with the allowed kinds of reset, from weak to strong, until all GPUs are healthy. */
export async function climb(scrub: Scrub): Promise<void> {
  const { input, run } = scrub;
  run.progress({ step: "gpu_reset" });
  await endPersistence(scrub);
  await endPartitions(scrub);
  scrub.idle = await readOrNone(scrub);
  if (input.rungs.includes("reset")) await resetAll(scrub);
  if (input.rungs.includes("reload") && !isWell(scrub)) await reload(scrub);
}

export const resetSteps = (scrub: Scrub): GpuStep[] => scrub.before.map((gpu) => resetStep(scrub, gpu));

const stateOf = (gpus: readonly GpuState[], pci: string): GpuState | undefined => gpus.find((one) => one.pci === pci);

function isWell(scrub: Scrub): boolean {
  return scrub.before.every(({ pci }) => {
    const reset = scrub.resets.get(pci);
    return reset?.ok === true && whyNotReset(stateOf(scrub.idle, pci), stateOf(scrub.after, pci)).length === 0;
  });
}

/** Unloads the kernel modules that use the GPU driver, as far as possible, and then resets each group of GPUs. */
async function resetAll(scrub: Scrub): Promise<void> {
  const stayed = await unloadModules(scrub, false);
  for (const group of resetGroups(scrub.before)) {
    scrub.run.progress({ step: "gpu_reset" });
    const note = (result: Omit<ResetResult, "group" | "rung">): void => {
      for (const { pci } of group.gpus) scrub.resets.set(pci, { group: group.name, rung: "reset", ...result });
    };
    const ran = await scrub.tools.reset(group.gpus).catch((error: unknown) => {
      if (error instanceof DriverWedged) note({ ok: false, exitCode: null, said: error.message });
      throw error;
    });
    const ok = ran.exitCode === 0;
    const users = ok ? "" : ` Kernel: ${await kernelUsers(scrub)}. ${named(stayed, 3)}`;
    note({ ok, exitCode: ran.exitCode, said: `${ran.said}${users}` });
  }
  await settle(scrub, []);
}

/**
 * Unloads and loads the GPU driver while the Fabric Manager is stopped, which initializes every GPU. NVLink stays usable only if all GPUs are
 * initialized between a stop and a start of the Fabric Manager.
 */
async function reload(scrub: Scrub): Promise<void> {
  const failures: string[] = [];
  for (const unit of scrub.fabricUnits) {
    const failed = await stopService(scrub, unit);
    if (failed !== null) failures.push(failed);
  }
  failures.push(...(await unloadModules(scrub, true)));
  const users = failures.length === 0 ? "" : await kernelUsers(scrub);
  const earlier = new Map(scrub.resets);
  const loading = await settle(scrub, scrub.fabricUnits);
  const ok = failures.length === 0 && loading.length === 0;
  const said = ok ? "The driver was unloaded and loaded again." : named([...failures, ...loading, users], 4);
  for (const { pci } of scrub.before) {
    const before = earlier.get(pci);
    scrub.resets.set(pci, {
      group: before?.group ?? "all",
      rung: "reload",
      ok,
      exitCode: ok ? 0 : 1,
      said:
        before === undefined
          ? said
          : `${said} Before that the reset ended with status ${before.exitCode}: ${before.said}`,
    });
  }
}

/** Returns a message for each kernel module that the agent could not load, and for each systemd unit that it could not start. */
async function settle(scrub: Scrub, units: readonly string[]): Promise<string[]> {
  const { system, timing, run } = scrub;
  const failures = await loadModules(system, timing, scrub.journal.modules);
  failures.push(...(await startServices(system, timing, units)).failures);
  const deadline = performance.now() + timing.fabricMs;
  for (;;) {
    scrub.after = await readOrNone(scrub);
    run.progress({ step: "gpu_reset" });
    const isWaiting = scrub.after.some(({ fabric }) => fabric === "starting");
    if (!isWaiting || performance.now() >= deadline) return failures;
    await sleep(timing.lookEveryMs);
  }
}

/** If the vendor's tool prints no GPU state, for example because a reset left no GPU, no GPU counts as present. */
async function readOrNone(scrub: Scrub): Promise<readonly GpuState[]> {
  try {
    return (await scrub.tools.read()).gpus;
  } catch (error) {
    if (error instanceof StateUnreadable) return [];
    throw error;
  }
}

function resetStep(scrub: Scrub, gpu: GpuState): GpuStep {
  const reset = scrub.resets.get(gpu.pci);
  if (reset === undefined) return gpuStep("gpu_reset", gpu.pci, "skipped", "The GPU was not reset.");
  const message = reset.ok ? `${reset.rung} succeeded. ${reset.said}` : `reset_failed: ${reset.said}`;
  return gpuStep("gpu_reset", gpu.pci, reset.ok ? "ok" : "failed", message, {
    uuid: gpu.uuid,
    group: reset.group,
    rung: reset.rung,
    exit_code: reset.exitCode,
  });
}
