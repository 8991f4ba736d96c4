import { type Findings, fault, fine, type Judged, notObserved } from "./judged.ts";

/** The error counters of one memory controller since the host's boot, from `/sys/devices/system/edac/mc/mc*`. */
export interface MemoryController {
  readonly name: string;
  readonly uncorrected: number;
  readonly corrected: number;
  /** The labels of the memory modules that have errors, each with its error counts. */
  readonly modules: readonly string[];
}

export interface MemoryLook {
  readonly atMs: number;
  readonly corrected: number;
}

/**
 * More than `MOST_CORRECTED_PER_HOUR` corrected memory errors in an hour mean that a memory module is failing, and cost so much processor time that
 * tenants notice.
 */
const MOST_CORRECTED_PER_HOUR = 100;
const HOUR_MS = 3_600_000;

const rateOf = (before: MemoryLook, now: MemoryLook): number =>
  // The memory error counters restart at zero when the driver of the memory controller is loaded again.
  (Math.max(0, now.corrected - before.corrected) * HOUR_MS) / Math.max(1, now.atMs - before.atMs);

/**
 * Compares the memory error counters with their values at the previous check. Uncorrected memory errors count since the boot, because the memory
 * module that made them is still in the host.
 */
export function judgeMemory(
  controllers: readonly MemoryController[],
  before: MemoryLook | null,
  now: MemoryLook,
): Findings {
  if (controllers.length === 0) {
    const none = notObserved("The kernel has no memory controller under /sys/devices/system/edac/mc.");
    return { "health.memory": none, "health.memory_wear": none };
  }
  const where = controllers.flatMap(({ name, modules }) => modules.map((module) => `${name} ${module}`));
  const broken = controllers.filter(({ uncorrected }) => uncorrected > 0);
  const counted = broken.map(({ name, uncorrected }) => `${name} counts ${uncorrected} uncorrected errors since boot`);
  const rate = before === null ? 0 : rateOf(before, now);
  const wear: Judged =
    rate > MOST_CORRECTED_PER_HOUR
      ? fault("ManyCorrectedErrors", [`${Math.round(rate)} corrected errors in an hour`, ...where])
      : fine(`${now.corrected} corrected errors since boot`);
  return {
    "health.memory":
      counted.length > 0 ? fault("UncorrectedErrors", [...counted, ...where]) : fine("No uncorrected errors"),
    "health.memory_wear": wear,
  };
}
