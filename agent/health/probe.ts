import type { System } from "../system/system.ts";
import type { Findings, HealthType } from "./judged.ts";

export interface ProbeContext {
  readonly system: System;
  /** By how many milliseconds the hub's clock is ahead of the host's. */
  readonly skewMs: number;
  /** True if the condition is now reported as False, for thresholds that differ for the way back. */
  wasBad(type: HealthType): boolean;
}

/** One kind of look at the host, with a rhythm of its own. A probe may keep what it saw, to compare its next look with it. */
export interface Probe {
  readonly name: string;
  readonly everyMs: number;
  /** True if the probe calls the GPU driver, which it must not do while a task works on the GPUs. */
  readonly callsGpuDriver: boolean;
  look(context: ProbeContext): Promise<Findings>;
}

const MINUTE_MS = 60_000;
/** The rhythms of the looks, by what a look costs. The figure `agent-health` of the benchmarks adds the costs up. */
export const RHYTHM = {
  files: 5 * MINUTE_MS,
  kernelLog: 5 * MINUTE_MS,
  nvidia: 10 * MINUTE_MS,
  clock: 15 * MINUTE_MS,
  disks: 30 * MINUTE_MS,
  /** amd-smi is a Python program and takes a second of processor time for each of its four commands. */
  amd: 60 * MINUTE_MS,
} as const;

/** How long a tool of the host may take; `graceMs` is the time between SIGTERM, SIGKILL and giving the tool up. */
export const TOOL_TIME = { timeoutMs: 30_000, graceMs: 5_000 };
export type ToolTime = typeof TOOL_TIME;
