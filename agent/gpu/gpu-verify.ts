import type { GpuState } from "./gpu-state.ts";
import type { KernelFault } from "./kernel-faults.ts";

/** A GPU that no process uses may have this much memory in use: drivers before R510 count their own reserved memory as used. */
const IDLE_MIB = 1_024;
/** The driver's own small use differs by a few MiB between two looks. */
const SLACK_MIB = 16;
/** Settings that a cleaning sets to this value, whatever they were before. */
const REQUIRED: Readonly<Record<string, string>> = {
  compute_mode: "Default",
  accounting_mode: "Disabled",
  power_limit: "default",
  compute_partition: "SPX",
  memory_partition: "NPS1",
};

export interface GpuReadings {
  readonly before: GpuState | undefined;
  /** The state with no service and no process, before the reset. */
  readonly idle: GpuState | undefined;
  /** The state with no service and no process, after the reset. */
  readonly after: GpuState | undefined;
  /** The state with all services running again. */
  readonly settled: GpuState | undefined;
  readonly kernelFaults: readonly KernelFault[];
}

/**
 * Says why a GPU is not clean after its reset. The list of a clean GPU is empty. A value that is not known is a reason, because it proves nothing.
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

/** A GPU that had a fabric must have it again. A GPU without a fabric, for example a PCIe card, needs none. */
const fabricFaults = (idle: GpuState, { fabric }: GpuState): string[] =>
  fabric === "ready" || (fabric === "absent" && idle.fabric === "absent") ? [] : [`the fabric is ${fabric}`];

function identityFaults(before: GpuState, after: GpuState): string[] {
  return (["uuid", "serial", "vbios", "driver"] as const).flatMap((name) =>
    before[name] === after[name] ? [] : [`${name} was ${before[name]} and is ${after[name]}`],
  );
}

/** A setting must have its required value, or the value of before. A setting that the vendor's tool does not tell (`null`) is not known. */
function settingFaults(before: GpuState, settled: GpuState): string[] {
  return Object.entries(settled.settings).flatMap(([name, value]) => {
    const isNotApplicable = value === "N/A" || value === "[N/A]";
    const wanted = isNotApplicable ? value : (REQUIRED[name] ?? before.settings[name] ?? null);
    if (value === null) return [`the setting ${name} is not known`];
    return value === wanted ? [] : [`the setting ${name} is ${value}, where ${wanted} is expected`];
  });
}

/** Says why a GPU is not well directly after a reset, so that the next stronger means is worth a try. */
export function whyNotReset(idle: GpuState | undefined, after: GpuState | undefined): readonly string[] {
  if (idle === undefined || after === undefined) return ["the GPU is missing"];
  return [...after.faults, ...memoryFaults(idle, after), ...processFaults(after), ...fabricFaults(idle, after)];
}
