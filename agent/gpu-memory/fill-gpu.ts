import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { GPU_FAULTS, type GpuFault } from "../../shared/gpu-faults.ts";
import { type GpuClear, GpuCommitment } from "../../shared/gpu-memory.ts";
import type { TaskInput, TaskRun } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";
import type { WorkEnd, WorkFailure } from "../system/workers/workers.ts";
import { isCancelledByHub } from "../tasks/cancelled.ts";
import { outcomeOfClear } from "./clear-outcome.ts";
import { COMMITMENT_FILE, type OverwriteOrder, type OverwriteResult } from "./exchange.ts";
import { aliveWorker, type EndTiming, exchangeFolder, readExchange, workerAfter } from "./exchange-reader.ts";
import { OVERWRITE_WORK } from "./overwrite-work.ts";

type Input = TaskInput<"node.gpu_fill">;
type Gpu = Input["gpus"][number];

export interface FillTiming extends EndTiming {
  readonly tellEveryMs: number;
}
/**
 * If the outcome of an overwrite of GPU memory has both a commitment and a fault, the memory did not return the written bytes. If the kernel's driver
 * cleared the GPU's memory, the outcome has `clear` and no commitment, because the worker process holds none of the memory.
 */
export interface FillOutcome {
  readonly commitment: GpuCommitment | null;
  readonly clear?: GpuClear;
  /** How many bytes of GPU memory the pass `mark` filled with the hub's random number `marker`, or null if the task's order has no `marker`. */
  readonly markedBytes: number | null;
  readonly fault: GpuFault | null;
  readonly message: string;
}

/** If a worker process still zeroes, reads or frees the GPU's memory this many seconds after `hold_seconds`, systemd ends the process. */
const RELEASE_SECONDS = 300;

const FAULT_OF_FAILURE: Readonly<Record<WorkFailure, GpuFault>> = {
  work_failed: "worker_lost",
  not_started: "worker_lost",
  worker_lost: "worker_lost",
  deadline_passed: "deadline_passed",
  driver_wedged: "driver_wedged",
  systemd_missing: "systemd_missing",
};

/**
 * The reasons for which the agent stops following a worker process that overwrites a GPU's memory. `committed` means that the worker process has
 * overwritten the GPU's memory and still holds the memory. `too_late` means that the worker process missed its deadline, so the agent ends it.
 */
class Followed extends Error {
  override readonly name = "Followed";
  readonly why: "committed" | "too_late";
  constructor(why: Followed["why"]) {
    super(why);
    this.why = why;
  }
}

interface Filling {
  readonly system: System;
  readonly timing: FillTiming;
  readonly input: Input;
  readonly gpu: Gpu;
  readonly number: number;
  readonly run: TaskRun<"node.gpu_fill">;
  readonly tell: (step: string, bytes: number) => void;
}

/**
 * If the task's order has the random number `marker`, a separate worker process first fills the GPU's memory with it. After the worker process that
 * overwrites the GPU's memory has written its commitment (its report on the result), it holds the memory for a challenge of the hub.
 */
export async function fillGpu(filling: Filling): Promise<FillOutcome> {
  const { system, timing, input, gpu, run } = filling;
  if (input.marker === null) return overwriteGpu(filling, null);
  const end = await follow(filling, "mark", async () => false);
  // The worker process that fills the GPU's memory with the random number `marker` writes its result before it ends. The GPU's driver takes back the
  // memory that a worker process filled with the random number `marker` only when the process has ended.
  const left = await workerAfter(system, exchangeFolder(run.taskId, gpu.uuid, "mark"), timing, run.signal);
  if (end instanceof Followed || left !== null) return tooLate(filling, "mark", null);
  return end.ok && end.result.end === "marked"
    ? overwriteGpu(filling, end.result.bytes)
    : { ...ofEnd(gpu.uuid, end), markedBytes: null };
}

async function overwriteGpu(filling: Filling, markedBytes: number | null): Promise<FillOutcome> {
  const { system, run, gpu } = filling;
  const folder = exchangeFolder(run.taskId, gpu.uuid);
  const committed = () => readExchange(system, folder, COMMITMENT_FILE, GpuCommitment);
  const end = await follow(filling, "overwrite", async () => (await committed()) !== null);
  const commitment = await committed();
  if (commitment !== null) return { ...ofCommitment(commitment), markedBytes };
  if (end instanceof Followed) return tooLate(filling, "overwrite", markedBytes);
  return { ...ofEnd(gpu.uuid, end), markedBytes };
}

/** Starts a worker process or finds a running one. */
async function follow(
  { system, timing, input, gpu, number, run, tell }: Filling,
  pass: OverwriteOrder["pass"],
  isEnough: () => Promise<boolean>,
): Promise<WorkEnd<OverwriteResult> | Followed> {
  const order: OverwriteOrder = {
    fill_task_id: run.taskId,
    folder: join(system.root, exchangeFolder(run.taskId, gpu.uuid, pass)),
    gpu: number,
    vendor: gpu.vendor,
    uuid: gpu.uuid,
    pci_address: gpu.pci_address,
    seed: input.seed,
    marker: input.marker,
    pass,
    hold_seconds: input.hold_seconds,
  };
  const stop = new AbortController();
  const ended = new AbortController();
  const work = system.workers
    .perform({
      taskId: run.taskId,
      part: `gpu-${number}-${pass}`,
      work: OVERWRITE_WORK,
      input: order,
      deadlineSeconds: input.deadline_seconds + input.hold_seconds + RELEASE_SECONDS,
      signal: AbortSignal.any([run.signal, stop.signal]),
      endsWith: (signal) => isCancelledByHub(signal) || isTooLate(signal.reason),
      progress: ({ step, bytes }) => tell(step, bytes),
    })
    .catch((error: unknown) => {
      if (error instanceof Followed) return error;
      throw error;
    })
    .finally(() => ended.abort());
  // The worker process may fail while the agent still calls `isEnough` to check whether the worker process has done enough. Without a handler for the
  // rejected promise `work`, Node.js would end the agent for an unhandled rejection.
  work.catch(() => undefined);
  const until = performance.now() + input.deadline_seconds * 1000;
  while (!ended.signal.aborted && !stop.signal.aborted) {
    if (await isEnough()) stop.abort(new Followed("committed"));
    else if (performance.now() > until) stop.abort(new Followed("too_late"));
    else await sleep(timing.lookEveryMs, undefined, { signal: ended.signal }).catch(() => undefined);
  }
  return work;
}

const isTooLate = (reason: unknown): boolean => reason instanceof Followed && reason.why === "too_late";

type Unmarked = Omit<FillOutcome, "markedBytes">;

function ofCommitment(commitment: GpuCommitment): Unmarked {
  const { uuid, mismatched_blocks, allocated_bytes } = commitment;
  if (mismatched_blocks === 0)
    return {
      commitment,
      fault: null,
      message: `${allocated_bytes} bytes of GPU ${uuid} were overwritten and compared.`,
    };
  const message = `GPU ${uuid} returned other bytes than were written in ${mismatched_blocks} blocks of 64 bytes, the first at byte ${commitment.first_mismatch}. ${GPU_FAULTS.memory_mismatch}`;
  return { commitment, fault: "memory_mismatch", message };
}

/** A worker process that survives SIGKILL is blocked in the GPU's driver. */
async function tooLate(
  { system, run, gpu, input }: Filling,
  pass: OverwriteOrder["pass"],
  markedBytes: number | null,
): Promise<FillOutcome> {
  const alive = await aliveWorker(system, exchangeFolder(run.taskId, gpu.uuid, pass));
  const fault = alive === null ? "deadline_passed" : "driver_wedged";
  const process = alive === null ? "" : ` Its process ${alive.pid} does not end.`;
  const what = `The worker of GPU ${gpu.uuid} did not overwrite the memory within ${input.deadline_seconds} s.${process}`;
  return { commitment: null, markedBytes, fault, message: `${what} ${GPU_FAULTS[fault]}` };
}

function ofEnd(uuid: string, end: WorkEnd<OverwriteResult>): Unmarked {
  if (!end.ok) {
    const fault = FAULT_OF_FAILURE[end.code];
    return { commitment: null, fault, message: `GPU ${uuid}: ${end.message} ${GPU_FAULTS[fault]}` };
  }
  if (end.result.end === "fault") return { commitment: null, fault: end.result.fault, message: end.result.message };
  if (end.result.end === "cleared")
    return { commitment: null, clear: end.result.clear, ...outcomeOfClear(end.result.clear) };
  const what = `The worker of GPU ${uuid} ended without a commitment.`;
  return { commitment: null, fault: "worker_lost", message: `${what} ${GPU_FAULTS.worker_lost}` };
}
