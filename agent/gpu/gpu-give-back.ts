import type { System } from "../system/system.ts";
import { callDriver } from "./gpu-tool.ts";
import { parseModules } from "./kernel-modules.ts";
import { endJournal, readJournal, type ScrubJournal } from "./scrub-journal.ts";
import { SCRUB_TIMING, type ScrubTiming } from "./scrub-timing.ts";

export interface GivenBack {
  readonly services: readonly string[];
  /** The reasons why services, kernel modules or persistence modes were not restored; while there are any, the cleaning's journal stays on disk. */
  readonly failures: readonly string[];
}

export async function listUnits(system: System, timing: ScrubTiming): Promise<string> {
  const args = ["list-units", "--type=service", "--all", "--plain", "--no-legend", "--no-pager", "--full"];
  const ran = await system.attempt("systemctl", args, { timeoutMs: timing.serviceMs, graceMs: timing.graceMs });
  if (ran.kind === "ended" && ran.exitCode === 0) return ran.stdout;
  throw new Error(`systemctl does not list the services: ${ran.kind === "ended" ? ran.stderr : ran.kind}`);
}

const isRunning = (listed: string, unit: string): boolean =>
  listed.split("\n").some((line) => {
    const [name, , active] = line.trim().split(/\s+/);
    return name === unit && active === "active";
  });

/** A hanging `systemctl` does not prove that the GPU driver hangs. */
export async function systemctl(
  system: System,
  timing: ScrubTiming,
  verb: "start" | "stop",
  unit: string,
): Promise<string | null> {
  const ran = await system.attempt("systemctl", [verb, unit], { timeoutMs: timing.serviceMs, graceMs: timing.graceMs });
  if (ran.kind === "missing") return ran.message;
  if (ran.kind === "hung") return `systemctl ${verb} ${unit} did not end within ${timing.serviceMs} ms`;
  return ran.exitCode === 0
    ? null
    : `systemctl ${verb} ${unit} ended with status ${ran.exitCode}: ${ran.stderr.slice(-200)}`;
}

/** Loads kernel modules with `modprobe`, which also loads the modules that a module uses. */
export async function loadModules(system: System, timing: ScrubTiming, modules: readonly string[]): Promise<string[]> {
  const failures: string[] = [];
  for (const name of [...modules].reverse()) {
    const loaded = parseModules((await system.read("/proc/modules")) ?? "").some((one) => one.name === name);
    if (loaded) continue;
    const ran = await callDriver(system, "modprobe", [name], { timeoutMs: timing.moduleMs, graceMs: timing.graceMs });
    if (ran.exitCode !== 0) failures.push(`modprobe ${name} ended with status ${ran.exitCode}: ${ran.said}`);
  }
  return failures;
}

/** Starts the services in `services` that do not run, in the reverse of the order in which the GPU cleaning stopped them. */
export async function startServices(
  system: System,
  timing: ScrubTiming,
  services: readonly string[],
): Promise<GivenBack> {
  const failures: string[] = [];
  const listed = services.length === 0 ? "" : await listUnits(system, timing);
  for (const unit of [...services].reverse()) {
    if (isRunning(listed, unit)) continue;
    const failed = await systemctl(system, timing, "start", unit);
    if (failed !== null) failures.push(failed);
  }
  return { services: [...services].reverse(), failures };
}

async function keepPersistent(system: System, timing: ScrubTiming, journal: ScrubJournal): Promise<string[]> {
  const failures: string[] = [];
  for (const pci of journal.persistent) {
    const options = { timeoutMs: timing.readMs, graceMs: timing.graceMs };
    const ran = await callDriver(system, "nvidia-smi", ["-i", pci, "-pm", "1"], options);
    if (ran.exitCode !== 0) failures.push(`persistence mode of ${pci}: ${ran.said}`);
  }
  return failures;
}

/**
 * Restores the kernel modules, services and persistence modes that a GPU cleaning stopped, and removes the cleaning's journal. `giveBack` leaves
 * kernel modules and services that already run as they are. Throws `DriverWedged` if the GPU driver hangs. After `DriverWedged`, the cleaning's
 * journal stays on disk, and the agent restores what the cleaning stopped after the next boot.
 */
export async function giveBack(system: System, timing: ScrubTiming, journal: ScrubJournal): Promise<GivenBack> {
  const modules = await loadModules(system, timing, journal.modules);
  const started = await startServices(system, timing, journal.services);
  const persistent = await keepPersistent(system, timing, journal);
  const failures = [...modules, ...started.failures, ...persistent];
  if (failures.length === 0) await endJournal(system, journal);
  return { services: started.services, failures };
}

/** Restores what a killed GPU cleaning had stopped, or returns null if the host has no journal of a GPU cleaning. */
export async function giveBackLeftovers(system: System, timing: ScrubTiming = SCRUB_TIMING): Promise<GivenBack | null> {
  const journal = await readJournal(system);
  return journal === null ? null : giveBack(system, timing, journal);
}
