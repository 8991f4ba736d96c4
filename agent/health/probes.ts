import { amdProbe, nvidiaProbe, rasProbe } from "./gpu-probes.ts";
import { clockProbe, disksProbe, memoryProbe, nicsProbe, roomProbe } from "./host-probes.ts";
import { gpuFaultsProbe, kernelLogProbe } from "./kernel-log-probe.ts";
import type { Probe } from "./probe.ts";

const partsProbes = (): readonly Probe[] => [
  nicsProbe(),
  memoryProbe(),
  roomProbe(),
  disksProbe(),
  nvidiaProbe(),
  amdProbe(),
  rasProbe(),
];

/**
 * Makes the probes that read the present state of the hardware. Each call of `hardwareProbes` makes new probes, which do not know what earlier probes
 * observed.
 */
export const hardwareProbes = (): readonly Probe[] => [gpuFaultsProbe(), ...partsProbes()];

/** All probes of the host's health. The probe of the kernel's log reports only what the kernel has logged since the previous run of the probe. */
export const healthProbes = (): readonly Probe[] => [clockProbe(), kernelLogProbe(), ...partsProbes()];
