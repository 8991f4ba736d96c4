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

/** The probes of the present state of the hardware. Each call makes new probes, which know nothing of what earlier probes saw. */
export const hardwareProbes = (): readonly Probe[] => [gpuFaultsProbe(), ...partsProbes()];

/** All probes of the host's health. The probe of the kernel's log tells what has happened since the probe before it. */
export const healthProbes = (): readonly Probe[] => [clockProbe(), kernelLogProbe(), ...partsProbes()];
