import { messageOf } from "../message-of.ts";
import type { GpuEnd } from "./gpu-need.ts";
import type { GpuState } from "./gpu-state.ts";
import { type GpuStep, gpuStep, named } from "./gpu-steps.ts";
import { DriverWedged, StateUnreadable, ToolMissing } from "./gpu-tool.ts";
import { pciGpus } from "./gpu-tools.ts";
import { whyNotClean } from "./gpu-verify.ts";
import {
  isOffTheBus,
  isSamePlace,
  journalStart,
  type KernelFault,
  kernelFaults,
  type Moment,
  presentMoment,
} from "./kernel-faults.ts";
import { markWedged } from "./scrub-journal.ts";
import type { Scrub } from "./scrub-state.ts";

export interface Ends {
  readonly gpus: readonly GpuEnd[];
  readonly wedged: boolean;
  /** The PCI addresses of the GPUs that are clean. */
  readonly clean: readonly string[];
}

interface Seen {
  readonly settled: readonly GpuState[];
  readonly onBus: readonly string[];
  readonly faults: readonly KernelFault[] | string;
  readonly wedge: DriverWedged | null;
}

/** Compares each GPU with its state before the cleaning, and reports a step `gpu_verify` for each GPU, even for a missing one. */
export async function verify(scrub: Scrub, startedAt: Moment, earlier: DriverWedged | null): Promise<Ends> {
  scrub.run.progress({ step: "gpu_verify" });
  const seen = await look(scrub, startedAt, earlier);
  const { before, steps, input } = scrub;
  const addresses = new Set([...before, ...scrub.after].map(({ pci }) => pci));
  for (const pci of seen.onBus) if (addresses.size < input.expected_gpus) addresses.add(pci);
  const clean: string[] = [];
  const gpus = [...addresses].sort().map((pci) => {
    const { step, end } = verdict(scrub, seen, pci);
    steps.push(step);
    if (end.isClean) clean.push(pci);
    return end;
  });
  for (let missing = addresses.size + 1; missing <= input.expected_gpus; missing += 1) {
    const target = `gpu ${missing} of ${input.expected_gpus}`;
    const message = `gpu_missing: The order expects ${input.expected_gpus} GPUs, and the PCI bus has ${seen.onBus.length}.`;
    steps.push(gpuStep("gpu_verify", target, "failed", message, { on_bus: seen.onBus.length }));
    gpus.push({ isClean: false, isOnBus: false, isTried: false, recommends: "unknown" });
  }
  return { gpus, wedged: seen.wedge !== null, clean };
}

async function look(scrub: Scrub, startedAt: Moment, earlier: DriverWedged | null): Promise<Seen> {
  const { system, tools, input } = scrub;
  const onBus = await pciGpus(system, input.vendor);
  const faults = await readFaults(scrub, startedAt);
  if (earlier !== null) return { settled: [], onBus, faults, wedge: earlier };
  try {
    return { settled: (await tools.read()).gpus, onBus, faults, wedge: null };
  } catch (error) {
    if (error instanceof StateUnreadable || error instanceof ToolMissing)
      return { settled: [], onBus, faults: error.message, wedge: null };
    if (!(error instanceof DriverWedged)) throw error;
    await markWedged(system, error);
    return { settled: [], onBus, faults, wedge: error };
  }
}

/**
 * Reads the GPU faults since the GPU cleaning's start from the systemd journal. The agent reads the kernel's log from the systemd journal, because
 * the agent's unit may not be allowed to read the kernel's log buffer.
 */
async function readFaults({ system, timing, input }: Scrub, since: Moment): Promise<readonly KernelFault[] | string> {
  const args = ["-k", "-o", "json", "--output-fields=MESSAGE", "--no-pager", "-q"];
  const start = `--since=@${journalStart(since, presentMoment())}`;
  const options = { timeoutMs: timing.readMs, graceMs: timing.graceMs };
  const ran = await system.attempt("journalctl", [...args, start], options);
  if (ran.kind !== "ended" || ran.exitCode !== 0)
    return `journalctl does not tell the kernel's log: ${ran.kind === "ended" ? ran.stderr.slice(-200) : ran.kind}`;
  try {
    return kernelFaults(input.vendor, ran.stdout, since.monotonicUs);
  } catch (error) {
    return `the kernel's log is not readable: ${messageOf(error)}`;
  }
}

function verdict(scrub: Scrub, seen: Seen, pci: string): { readonly step: GpuStep; readonly end: GpuEnd } {
  const at = (gpus: readonly GpuState[]): GpuState | undefined => gpus.find((one) => one.pci === pci);
  const before = at(scrub.before);
  const after = at(scrub.after);
  const settled = at(seen.settled);
  const reset = scrub.resets.get(pci);
  // A GPU fault whose log line names no GPU may belong to any GPU, so it counts for every GPU.
  const own =
    typeof seen.faults === "string" ? [] : seen.faults.filter((one) => one.pci === null || isSamePlace(one.pci, pci));
  const reasons = [
    ...(seen.wedge === null ? [] : [`driver_wedged: ${seen.wedge.message}`]),
    ...(before === undefined ? ["gpu_missing: the driver did not list the GPU before the cleaning"] : []),
    ...(reset === undefined ? ["the GPU was not reset"] : reset.ok ? [] : ["reset_failed"]),
    ...(typeof seen.faults === "string" ? [seen.faults] : []),
    ...(reset === undefined ? [] : whyNotClean({ before, idle: at(scrub.idle), after, settled, kernelFaults: own })),
  ];
  const isOnBus = seen.onBus.includes(pci) && !own.some(isOffTheBus);
  const isClean = reasons.length === 0;
  const last = settled ?? after ?? before;
  const message = isClean ? "The GPU was reset and is healthy." : named(reasons, 6);
  const step = gpuStep("gpu_verify", pci, isClean ? "ok" : "failed", message, {
    uuid: last?.uuid ?? null,
    serial: last?.serial ?? null,
    vbios: last?.vbios ?? null,
    driver: last?.driver ?? null,
    rung: reset?.rung ?? "none",
    memory_total_mib: last?.memoryTotalMib ?? null,
    memory_used_before_mib: before?.memoryUsedMib ?? null,
    memory_used_idle_mib: at(scrub.idle)?.memoryUsedMib ?? null,
    memory_used_after_mib: after?.memoryUsedMib ?? null,
    faults_before: before?.faults.join("; ") ?? "missing",
    faults_after: after?.faults.join("; ") ?? "missing",
    fabric: last?.fabric ?? null,
    settings: settled === undefined ? null : settingsText(settled),
    kernel_faults: own.length,
    on_bus: isOnBus,
  });
  return {
    step,
    end: { isClean, isOnBus, isTried: reset !== undefined, recommends: (after ?? before)?.recommends ?? "unknown" },
  };
}

const settingsText = ({ settings }: GpuState): string =>
  Object.entries(settings)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
