/** How long each kind of wait of a cleaning of GPUs may take. */
export interface ScrubTiming {
  /** `nvidia-smi -q -x` without persistence mode initializes each GPU first, which takes seconds for each. */
  readonly readMs: number;
  readonly resetMs: number;
  readonly serviceMs: number;
  readonly moduleMs: number;
  /** How long a tool may take to end after SIGTERM, and again after SIGKILL. */
  readonly graceMs: number;
  /** How long a process that holds a GPU may take to end after SIGTERM, and again after SIGKILL. */
  readonly holderMs: number;
  /** How long NVLink may take until all GPUs are connected again. */
  readonly fabricMs: number;
  readonly lookEveryMs: number;
}

export const SCRUB_TIMING: ScrubTiming = {
  readMs: 60_000,
  resetMs: 300_000,
  serviceMs: 90_000,
  moduleMs: 120_000,
  graceMs: 5_000,
  holderMs: 10_000,
  fabricMs: 300_000,
  lookEveryMs: 2_000,
};
