import { type GpuReset, wasResetSince } from "../gpu/gpu-resets.ts";
import { isOffTheBus, type KernelFault, kernelFaultIn } from "../gpu/kernel-faults.ts";
import { isBarring } from "./gpus.ts";
import type { KernelLine } from "./kernel-log.ts";

/** A grave fault of a GPU, which lasts until the GPU was reset or the host has booted. */
export interface StandingFault extends KernelFault {
  /** The kernel's monotonic time of the fault in microseconds, or null if the journal does not have this time. */
  readonly atUs: number | null;
}

export const MOST_FAULTS = 32;
/** Matches the line that NVIDIA's driver writes to the kernel's log when it is loaded, after which it initializes every GPU anew. */
const DRIVER_LOADED = /NVRM: loading NVIDIA UNIX/;

const isSame = (a: KernelFault, b: KernelFault): boolean =>
  a.pci === b.pci && a.xid === b.xid && (a.xid !== null || a.text === b.text);

/** Returns the GPU faults that the given lines of the kernel's log report, for GPUs of any vendor. */
export const faultsIn = (lines: readonly KernelLine[]): StandingFault[] =>
  lines.flatMap(({ text, atUs }) => {
    const found = kernelFaultIn("nvidia", text) ?? kernelFaultIn("amd", text);
    return found === null ? [] : [{ ...found, atUs }];
  });

/**
 * Returns the grave GPU faults of this boot, known ones and those in the new lines of the kernel's log, that no GPU reset and no load of NVIDIA's
 * driver has ended, the newest first. A GPU that has left the PCI bus comes back only with a power cycle, and thus with a new boot of the host.
 */
export function standingFaults(
  before: readonly StandingFault[],
  lines: readonly KernelLine[],
  resets: readonly GpuReset[],
): readonly StandingFault[] {
  let standing = [...before];
  for (const line of lines) {
    if (DRIVER_LOADED.test(line.text)) standing = standing.filter((one) => one.xid === null || isOffTheBus(one));
    for (const fault of faultsIn([line]).filter(isBarring))
      standing = [fault, ...standing.filter((one) => !isSame(one, fault))];
  }
  return standing.filter((one) => isOffTheBus(one) || !wasResetSince(resets, one, one.atUs)).slice(0, MOST_FAULTS);
}
