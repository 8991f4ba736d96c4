import type { System } from "../system/system.ts";
import type { Findings, HealthType } from "./judged.ts";

export interface ProbeContext {
  readonly system: System;
  /** By how many milliseconds the hub's clock is ahead of the host's clock. */
  readonly skewMs: number;
  /** True if the agent now reports the condition as False; some conditions need a stricter value to become True again. */
  wasBad(type: HealthType): boolean;
}

/** One kind of check of the host, with an interval of its own. A probe may store what it observed, to compare its next observation with it. */
export interface Probe {
  readonly name: string;
  readonly everyMs: number;
  /** True if the probe calls the GPU driver, which it must not do while a task works on the GPUs. */
  readonly callsGpuDriver: boolean;
  look(context: ProbeContext): Promise<Findings>;
}

const MINUTE_MS = 60_000;
/** How often each kind of probe runs; a costly probe runs less often. The benchmark `agent-health` adds up the costs of all probes. */
export const RHYTHM = {
  files: 5 * MINUTE_MS,
  kernelLog: 5 * MINUTE_MS,
  nvidia: 10 * MINUTE_MS,
  clock: 15 * MINUTE_MS,
  disks: 30 * MINUTE_MS,
  /** amd-smi is a Python program, and each of the four commands that the agent runs takes a second of processor time. */
  amd: 60 * MINUTE_MS,
} as const;

/** The time limit of a tool that a probe runs; `graceMs` is the time from SIGTERM to SIGKILL, and from SIGKILL until the agent gives the tool up. */
export const TOOL_TIME = { timeoutMs: 30_000, graceMs: 5_000 };
export type ToolTime = typeof TOOL_TIME;
