import type { GpuState } from "./gpu-state.ts";
import type { KernelFault } from "./kernel-faults.ts";

/** The most MiB of memory that may be in use on a GPU without processes, because drivers before R510 count their own memory. */
const IDLE_MIB = 1_024;
/** By how many MiB the GPU driver's own use of memory may differ between two readings. */
const SLACK_MIB = 16;
/** The GPU settings that must have a fixed value after a GPU cleaning, whatever a tenant set. */
const REQUIRED: Readonly<Record<string, string>> = {
  compute_mode: "Default",
  accounting_mode: "Disabled",
  power_limit: "default",
  compute_partition: "SPX",
  memory_partition: "NPS1",
};

export interface GpuReadings {
  readonly before: GpuState | undefined;
  readonly idle: GpuState | undefined;
  readonly after: GpuState | undefined;
  readonly settled: GpuState | undefined;
  readonly kernelFaults: readonly KernelFault[];
}

/**
 * Returns why a GPU is not clean after its reset, or an empty list for a clean GPU. An unknown value is a reason why a GPU is not clean, because it
 * proves nothing about the GPU.
 */
export function whyNotClean(readings: GpuReadings): readonly string[] {
  const { before, idle, after, settled, kernelFaults } = readings;
  if (after === undefined) return ["the GPU is missing after the reset"];
  if (settled === undefined) return ["the GPU is missing after its services started"];
  if (before === undefined || idle === undefined) return ["the GPU was missing before the reset"];
  return [
    ...whyNotReset(idle, after),
    ...settled.faults.filter((fault) => !after.faults.includes(fault)),
    ...identityFaults(before, after),
    ...settingFaults(before, settled),
    ...kernelFaults.map(({ text }) => `the kernel logged: ${text}`),
  ];
}

function memoryFaults(idle: GpuState, after: GpuState): string[] {
  const { memoryUsedMib: used } = after;
  if (used === null) return ["the used memory is not known"];
  const most = Math.min((idle.memoryUsedMib ?? 0) + SLACK_MIB, IDLE_MIB);
  return used <= most ? [] : [`${used} MiB of memory are in use, where at most ${most} MiB are expected`];
}

function processFaults({ processes }: GpuState): string[] {
  if (processes === null) return ["the processes of the GPU are not known"];
  return processes.length === 0 ? [] : [`processes ${processes.map(({ pid }) => pid).join(", ")} use the GPU`];
}

/**
 * A GPU that was in an NVLink fabric before its reset must be in the fabric after the reset. A GPU without an NVLink fabric before its reset, for
 * example a PCIe card, needs no fabric.
 */
const fabricFaults = (idle: GpuState, { fabric }: GpuState): string[] =>
  fabric === "ready" || (fabric === "absent" && idle.fabric === "absent") ? [] : [`the fabric is ${fabric}`];

function identityFaults(before: GpuState, after: GpuState): string[] {
  return (["uuid", "serial", "vbios", "driver"] as const).flatMap((name) =>
    before[name] === after[name] ? [] : [`${name} was ${before[name]} and is ${after[name]}`],
  );
}

/**
 * After a GPU cleaning, each GPU setting must have its value in `REQUIRED`, or, if `REQUIRED` lacks the setting, its value from before the cleaning.
 * A GPU setting that the vendor's tool does not report counts as a fault.
 */
function settingFaults(before: GpuState, settled: GpuState): string[] {
  return Object.entries(settled.settings).flatMap(([name, value]) => {
    const isNotApplicable = value === "N/A" || value === "[N/A]";
    const wanted = isNotApplicable ? value : (REQUIRED[name] ?? before.settings[name] ?? null);
    if (value === null) return [`the setting ${name} is not known`];
    return value === wanted ? [] : [`the setting ${name} is ${value}, where ${wanted} is expected`];
  });
}

/** Returns the faults of a GPU directly after a reset; if there are any, the agent tries the next stronger kind of reset. */
export function whyNotReset(idle: GpuState | undefined, after: GpuState | undefined): readonly string[] {
  if (idle === undefined || after === undefined) return ["the GPU is missing"];
  return [...after.faults, ...memoryFaults(idle, after), ...processFaults(after), ...fabricFaults(idle, after)];
}
