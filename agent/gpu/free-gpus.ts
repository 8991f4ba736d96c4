import { listUnits, systemctl } from "./gpu-give-back.ts";
import { describe, endHolders, gpuHolders, type Holders } from "./gpu-holders.ts";
import { runningServices } from "./gpu-services.ts";
import { gpuStep, named } from "./gpu-steps.ts";
import { callDriver } from "./gpu-tool.ts";
import { otherUsers, parseModules, unloadOrder } from "./kernel-modules.ts";
import { writeJournal } from "./scrub-journal.ts";
import type { Scrub } from "./scrub-state.ts";

/** The default control pipe of NVIDIA's MPS daemon, which keeps all GPUs open. */
const MPS_CONTROL = "/tmp/nvidia-mps/control";

/** Stops the services that hold GPUs, except those of the NVLink fabric, after it has noted each service in the cleaning's journal. */
export async function stopServices(scrub: Scrub): Promise<void> {
  const { system, timing, input, run } = scrub;
  run.progress({ step: "gpu_services_stop" });
  const services = runningServices(input.vendor, await listUnits(system, timing));
  scrub.fabricUnits = services.filter(({ fabric }) => fabric).map(({ unit }) => unit);
  const failures: string[] = [];
  const stopped: string[] = [];
  for (const { unit } of services.filter(({ fabric }) => !fabric)) {
    run.signal.throwIfAborted();
    const failed = await stopService(scrub, unit);
    if (failed === null) stopped.push(unit);
    else failures.push(failed);
  }
  const mps = input.vendor === "nvidia" ? await quitMps(scrub) : null;
  if (mps !== null && mps !== "") failures.push(mps);
  const message = failures.length === 0 ? `Stopped ${stopped.length} services.` : named(failures, 3);
  scrub.steps.push(
    gpuStep("gpu_services_stop", "host", failures.length === 0 ? "ok" : "failed", message, {
      stopped: stopped.join(" "),
      left_running: scrub.fabricUnits.join(" "),
      mps_daemon: mps === null ? "absent" : mps === "" ? "ended" : "failed",
    }),
  );
}

export async function stopService(scrub: Scrub, unit: string): Promise<string | null> {
  scrub.journal = { ...scrub.journal, services: [...scrub.journal.services, unit] };
  await writeJournal(scrub.system, scrub.journal);
  return systemctl(scrub.system, scrub.timing, "stop", unit);
}

/** The agent never restarts an MPS daemon outside a service, because a tenant left it behind. */
async function quitMps({ system, timing }: Scrub): Promise<string | null> {
  if (!(await system.isPresent(MPS_CONTROL))) return null;
  const options = { timeoutMs: timing.serviceMs, graceMs: timing.graceMs, input: "quit\n" };
  const ran = await system.attempt("nvidia-cuda-mps-control", [], options);
  if (ran.kind === "ended" && ran.exitCode === 0) return "";
  return `the MPS daemon did not end: ${ran.kind === "ended" ? ran.stderr.slice(-200) : ran.kind}`;
}

/**
 * Names the processes that hold a GPU, and ends these processes if the task's order allows it. Returns false if a process still holds a GPU, or may
 * hold one because its open files are unreadable. The reset of a GPU that a process still uses would fail, or harm the process.
 */
export async function freeFromProcesses(scrub: Scrub): Promise<boolean> {
  const { system, timing, input, run } = scrub;
  run.progress({ step: "gpu_holders" });
  const find = (): Promise<Holders> => gpuHolders(system, input.vendor, scrub.fabricUnits);
  const found = await find();
  run.signal.throwIfAborted();
  const left = input.kill_holders && found.holders.length > 0 ? await endHolders(system, timing, find) : found;
  const isFree = left.holders.length === 0 && left.unreadable.length === 0;
  const message =
    left.holders.length > 0
      ? `holders_remain: ${describe(left.holders)} ${input.kill_holders ? "did not end" : "hold the GPUs, and the order does not allow to end them"}.`
      : left.unreadable.length > 0
        ? `holders_remain: the open files of ${left.unreadable.length} processes cannot be read, for example of pid ${left.unreadable[0]}.`
        : "No process holds a GPU.";
  scrub.steps.push(
    gpuStep("gpu_holders", "host", isFree ? "ok" : "failed", message, {
      found: found.holders.length,
      found_names: describe(found.holders),
      remaining: left.holders.length,
      unreadable: left.unreadable.length,
    }),
  );
  return isFree;
}

/** Returns a text for operators that says what uses the GPU driver: other kernel modules, and the number of users that Linux does not name. */
export async function kernelUsers(scrub: Scrub): Promise<string> {
  const modules = parseModules((await scrub.system.read("/proc/modules")) ?? "");
  const root = modules.find(({ name }) => name === scrub.tools.module);
  const others = otherUsers(modules, scrub.tools.module);
  return `modules ${root?.usedBy.join(" ") || "none"}, other users ${others}`;
}

/**
 * Unloads the kernel modules that use the GPU driver, and if `whole` is true also the driver's own module. Returns a text for each kernel module that
 * stayed loaded, with the reason. Before each unload, the agent writes the name of the kernel module to the journal of the GPU cleaning.
 */
export async function unloadModules(scrub: Scrub, whole: boolean): Promise<string[]> {
  const { system, timing, tools } = scrub;
  const modules = unloadOrder(parseModules((await system.read("/proc/modules")) ?? ""), tools.module);
  const failures: string[] = [];
  for (const name of modules.filter((one) => whole || one !== tools.module)) {
    if (!scrub.journal.modules.includes(name)) {
      scrub.journal = { ...scrub.journal, modules: [...scrub.journal.modules, name] };
      await writeJournal(system, scrub.journal);
    }
    const ran = await callDriver(system, "rmmod", [name], { timeoutMs: timing.moduleMs, graceMs: timing.graceMs });
    if (ran.exitCode !== 0) failures.push(`${name} stayed loaded: ${ran.said}`);
  }
  return failures;
}

/**
 * Turns off the persistence mode of NVIDIA GPUs, which the driver counts as a client of the GPU. The journal of the GPU cleaning says for which GPUs
 * the agent must turn persistence mode on after the cleaning.
 */
export async function endPersistence(scrub: Scrub): Promise<void> {
  const { system, timing } = scrub;
  const persistent = scrub.before.filter(({ settings }) => settings["persistence_mode"] === "Enabled");
  if (scrub.input.vendor !== "nvidia" || persistent.length === 0) return;
  scrub.journal = { ...scrub.journal, persistent: persistent.map(({ pci }) => pci) };
  await writeJournal(system, scrub.journal);
  // The agent ignores the exit status with which nvidia-smi turns persistence mode off: if persistence mode prevents the reset, the reset's own
  // message says so.
  for (const { pci } of persistent)
    await callDriver(system, "nvidia-smi", ["-i", pci, "-pm", "0"], {
      timeoutMs: timing.readMs,
      graceMs: timing.graceMs,
    });
}
