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

/** The looks at the present state of the hardware. Each call makes them anew, without what earlier looks saw. */
export const hardwareProbes = (): readonly Probe[] => [gpuFaultsProbe(), ...partsProbes()];

/** All looks at the host's health. The kernel's log tells what has happened since the look before. */
export const healthProbes = (): readonly Probe[] => [clockProbe(), kernelLogProbe(), ...partsProbes()];
