import { GPU_FAULTS } from "../../shared/gpu-faults.ts";
import type { GpuClear, GpuCommitment } from "../../shared/gpu-memory.ts";
import { Json } from "../../shared/json.ts";
import type { TaskHandlers, TaskInput, TaskProgress, TaskResult } from "../../shared/tasks/index.ts";
import { markWedged, wedgedInThisBoot } from "../gpu/scrub-journal.ts";
import { driverEvidence, libraryEvidence } from "../gpu-memory/driver-evidence.ts";
import { endEarlierWorkers } from "../gpu-memory/earlier-workers.ts";
import { type FillOutcome, type FillTiming, fillGpu } from "../gpu-memory/fill-gpu.ts";
import type { System } from "../system/system.ts";

type Type = "node.gpu_fill";
type Gpu = TaskInput<Type>["gpus"][number];
type Step = TaskResult<Type>["steps"][number];

const TIMING: FillTiming = { lookEveryMs: 250, endWithinMs: 60_000, tellEveryMs: 2_000 };

/**
 * The worker processes hold the GPU memory after the task `node.gpu_fill`, so that they can answer the hub's challenge. A restarted agent finds the
 * running worker processes, or the files in which they committed to their memory content, and starts no second worker process for a GPU.
 */
export const gpuFill =
  (system: System, timing: FillTiming = TIMING): TaskHandlers[Type] =>
  async (input, run) => {
    // All GPUs of a host have one vendor, because the SKU of the host's node names one vendor.
    const vendor = input.gpus[0]?.vendor ?? "nvidia";
    const [driver, library] = [await driverEvidence(system, vendor), await libraryEvidence(system, vendor)];
    if (input.plan) {
      const steps = input.gpus.map(planned);
      return { ok: true, result: { steps, commitments: [], faults: [], driver, library } };
    }
    system.workers.begin(run.taskId, Json.parse(input));
    const left = await endEarlierWorkers(system, run.taskId, timing, run.signal);
    if (left !== null)
      return {
        ok: false,
        error: "earlier_worker_remains",
        message: `Process ${left.pid} of task ${left.taskId} still holds GPU memory. ${GPU_FAULTS.driver_wedged}`,
      };
    const told = new ToldGpus(run.progress, timing.tellEveryMs);
    const blocked = await wedgedInThisBoot(system);
    const ends = await Promise.all(
      input.gpus.map(async (gpu, number): Promise<{ gpu: Gpu; outcome: FillOutcome }> => {
        const outcome =
          blocked !== null
            ? wedged(blocked)
            : await fillGpu({ system, timing, input, gpu, number, run, tell: told.of(gpu.uuid) });
        return { gpu, outcome };
      }),
    );
    const hung = ends.find(({ outcome }) => outcome.fault === "driver_wedged");
    if (hung !== undefined && blocked === null) await markWedged(system, new Error(hung.outcome.message));
    const clears = ends.flatMap(({ outcome }) => outcome.clear ?? []);
    return {
      ok: true,
      result: {
        steps: ends.map(({ gpu, outcome }) => stepOf(gpu, outcome)),
        commitments: ends.flatMap(({ outcome }) => outcome.commitment ?? []),
        ...(clears.length === 0 ? {} : { clears }),
        faults: ends.flatMap(({ gpu, outcome }) =>
          outcome.fault === null ? [] : [{ target: gpu.uuid, fault: outcome.fault }],
        ),
        driver,
        library,
      },
    };
  };

/** The outcome for a GPU whose driver has hung since the last boot, for which the agent starts no worker process. */
const wedged = (message: string): FillOutcome => ({
  commitment: null,
  fault: "driver_wedged",
  message,
  markedBytes: null,
});

const planned = (gpu: Gpu): Step => ({
  step: "gpu_fill",
  target: gpu.uuid,
  outcome: "planned",
  message: `Muster would overwrite all memory of GPU ${gpu.uuid} that the driver gives to a process.`,
  evidence: {},
});

function stepOf(gpu: Gpu, { commitment, clear, markedBytes, fault, message }: FillOutcome): Step {
  const outcome = fault === null ? "ok" : "failed";
  const evidence = {
    ...(fault === null ? {} : { fault }),
    ...(markedBytes === null ? {} : { marked_bytes: markedBytes }),
    ...(commitment === null ? {} : evidenceOf(commitment)),
    ...(clear === undefined ? {} : evidenceOfClear(clear)),
  };
  return { step: "gpu_fill", target: gpu.uuid, outcome, message: message.slice(0, 512), evidence };
}

/**
 * The figures of a worker process's commitment to a GPU's memory content that a person reads first. The result of `node.gpu_fill` contains each GPU's
 * whole commitment (`GpuCommitment`), which the worker process made about the GPU's memory.
 */
const evidenceOf = (one: GpuCommitment) => ({
  allocated_bytes: one.allocated_bytes,
  total_bytes: one.total_bytes,
  reserved_bytes: one.reserved_bytes,
  unreached_bytes: (one.total_bytes ?? one.visible_bytes) - one.allocated_bytes,
  prefill_nonzero_units: one.prefill_nonzero_units,
  prefill_marker_units: one.prefill_marker_units,
  mismatched_blocks: one.mismatched_blocks,
  kernels_error: one.kernels_error,
  fill_bytes_per_second: perSecond(one.allocated_bytes, one.fill_ms),
  check_bytes_per_second: perSecond(one.allocated_bytes, one.check_ms),
});

const evidenceOfClear = (one: GpuClear) => ({
  technique: "kernel_clear",
  cleared_bytes: one.cleared_bytes,
  total_bytes: one.total_bytes,
  unreached_bytes: one.total_bytes - one.cleared_bytes,
  bar_bytes: one.bar_bytes,
  sampled_bytes: one.sampled_bytes,
  nonzero_units: one.nonzero_units,
  clear_bytes_per_second: perSecond(one.cleared_bytes, one.allocate_ms),
});

/** A duration below one millisecond counts as one millisecond, to avoid a division by zero. */
const perSecond = (bytes: number, ms: number): number => Math.round((bytes * 1000) / Math.max(ms, 1));

type Progress = TaskProgress<Type>;

/** Collects the progress of all GPUs' worker processes into one report, which the agent sends at most once every `everyMs`. */
class ToldGpus {
  readonly #gpus = new Map<string, Progress["gpus"][number]>();
  readonly #tell: (progress: Progress) => void;
  readonly #everyMs: number;
  #toldAt = Number.NEGATIVE_INFINITY;
  constructor(tell: (progress: Progress) => void, everyMs: number) {
    this.#tell = tell;
    this.#everyMs = everyMs;
  }
  of = (uuid: string) => (step: string, bytes: number) => {
    this.#gpus.set(uuid, { uuid, step: step.slice(0, 32), bytes });
    if (performance.now() - this.#toldAt < this.#everyMs) return;
    this.#toldAt = performance.now();
    this.#tell({ gpus: [...this.#gpus.values()] });
  };
}
