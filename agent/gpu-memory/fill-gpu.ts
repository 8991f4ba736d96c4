import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { GPU_FAULTS, type GpuFault } from "../../shared/gpu-faults.ts";
import { GpuCommitment } from "../../shared/gpu-memory.ts";
import type { TaskInput, TaskRun } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";
import type { WorkEnd, WorkFailure } from "../system/workers/workers.ts";
import { isCancelledByHub } from "../tasks/cancelled.ts";
import type { EndTiming } from "./earlier-workers.ts";
import { COMMITMENT_FILE, type OverwriteOrder, type OverwriteResult } from "./exchange.ts";
import { aliveWorker, exchangeFolder, readExchange } from "./exchange-reader.ts";
import { OVERWRITE_WORK } from "./overwrite-work.ts";

type Input = TaskInput<"node.gpu_fill">;
type NvidiaGpu = Extract<Input["gpus"][number], { vendor: "nvidia" }>;

export interface FillTiming extends EndTiming {
  readonly tellEveryMs: number;
}
/** What became of one GPU. A commitment with a fault belongs to memory that did not return what was written. */
export interface FillOutcome {
  readonly commitment: GpuCommitment | null;
  readonly fault: GpuFault | null;
  readonly message: string;
}

/** How long a worker may zero, read and free the memory after its hold time, before systemd ends it. */
const RELEASE_SECONDS = 300;

const FAULT_OF_FAILURE: Readonly<Record<WorkFailure, GpuFault>> = {
  work_failed: "worker_lost",
  not_started: "worker_lost",
  worker_lost: "worker_lost",
  deadline_passed: "deadline_passed",
  driver_wedged: "driver_wedged",
  systemd_missing: "systemd_missing",
};

/** Why the agent stops following a worker. The worker goes on after it has committed, and is ended if it is too late. */
class Followed extends Error {
  override readonly name = "Followed";
  readonly why: "committed" | "too_late";
  constructor(why: Followed["why"]) {
    super(why);
    this.why = why;
  }
}

/** Starts the worker of a GPU, or finds it, and follows it until it commits or ends. */
export async function fillGpu(
  system: System,
  timing: FillTiming,
  { input, gpu, number }: { readonly input: Input; readonly gpu: NvidiaGpu; readonly number: number },
  run: TaskRun<"node.gpu_fill">,
  tell: (step: string, bytes: number) => void,
): Promise<FillOutcome> {
  const folder = exchangeFolder(run.taskId, gpu.uuid);
  const order: OverwriteOrder = {
    fill_task_id: run.taskId,
    folder: join(system.root, folder),
    gpu: number,
    uuid: gpu.uuid,
    pci_address: gpu.pci_address,
    seed: input.seed,
    marker: input.marker,
    hold_seconds: input.hold_seconds,
  };
  const follow = new AbortController();
  const watched = new AbortController();
  const committed = () => readExchange(system, folder, COMMITMENT_FILE, GpuCommitment);
  const work = system.workers
    .perform({
      taskId: run.taskId,
      part: `gpu-${number}`,
      work: OVERWRITE_WORK,
      input: order,
      deadlineSeconds: input.deadline_seconds + input.hold_seconds + RELEASE_SECONDS,
      signal: AbortSignal.any([run.signal, follow.signal]),
      endsWith: (signal) => isCancelledByHub(signal) || isTooLate(signal.reason),
      progress: ({ step, bytes }) => tell(step, bytes),
    })
    .catch((error: unknown) => {
      if (error instanceof Followed) return error;
      throw error;
    })
    .finally(() => watched.abort());
  const until = performance.now() + input.deadline_seconds * 1000;
  while (!watched.signal.aborted && !follow.signal.aborted) {
    if ((await committed()) !== null) follow.abort(new Followed("committed"));
    else if (performance.now() > until) follow.abort(new Followed("too_late"));
    else await sleep(timing.lookEveryMs, undefined, { signal: watched.signal }).catch(() => undefined);
  }
  const end = await work;
  const commitment = await committed();
  if (commitment !== null) return ofCommitment(commitment);
  if (end instanceof Followed) return tooLate(gpu.uuid, input.deadline_seconds, await aliveWorker(system, folder));
  return ofEnd(gpu.uuid, end);
}

const isTooLate = (reason: unknown): boolean => reason instanceof Followed && reason.why === "too_late";

function ofCommitment(commitment: GpuCommitment): FillOutcome {
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

function tooLate(uuid: string, seconds: number, alive: { readonly pid: number } | null): FillOutcome {
  const fault = alive === null ? "deadline_passed" : "driver_wedged";
  const process = alive === null ? "" : ` Its process ${alive.pid} does not end.`;
  const what = `The worker of GPU ${uuid} did not overwrite the memory within ${seconds} s.${process}`;
  return { commitment: null, fault, message: `${what} ${GPU_FAULTS[fault]}` };
}

function ofEnd(uuid: string, end: WorkEnd<OverwriteResult>): FillOutcome {
  if (!end.ok) {
    const fault = FAULT_OF_FAILURE[end.code];
    return { commitment: null, fault, message: `GPU ${uuid}: ${end.message} ${GPU_FAULTS[fault]}` };
  }
  if (end.result.end === "fault") return { commitment: null, fault: end.result.fault, message: end.result.message };
  const what = `The worker of GPU ${uuid} ended without a commitment.`;
  return { commitment: null, fault: "worker_lost", message: `${what} ${GPU_FAULTS.worker_lost}` };
}
