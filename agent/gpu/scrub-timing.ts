export interface ScrubTiming {
  /**
   * How many milliseconds a read of the GPUs' state may take. Without persistence mode, `nvidia-smi -q -x` first initializes each GPU, which takes
   * seconds per GPU.
   */
  readonly readMs: number;
  readonly resetMs: number;
  readonly serviceMs: number;
  readonly moduleMs: number;
  /** How many milliseconds a GPU tool may take to end after SIGTERM, and as many after SIGKILL. */
  readonly graceMs: number;
  /** How many milliseconds a process that holds a GPU may take to end after SIGTERM, and as many after SIGKILL. */
  readonly holderMs: number;
  /** How many milliseconds NVLink may take after a reset until all GPUs are connected. */
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
