import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import { chunkNonce, type GpuCommitment, type GpuRelease, sampleBlocksIn } from "../../shared/gpu-memory.ts";
import { answersTo } from "./answers.ts";
import type { GpuDevice, OpenedGpu } from "./device.ts";
import type { GpuAnswers, GpuChallenge, OverwriteOrder, OverwriteResult } from "./exchange.ts";
import { GpuFaultError } from "./faults.ts";
import { type Allocation, allocateAll, bytesOf, piecesAt, type Slice, slicesOf } from "./range.ts";

export interface Exchange {
  commit(commitment: GpuCommitment): Promise<void>;
  challenge(): Promise<GpuChallenge | null>;
  answer(answers: GpuAnswers): Promise<void>;
  release(release: GpuRelease): Promise<void>;
  mustEnd(): Promise<boolean>;
}
export interface OverwriteRun {
  throwIfStopped(): void;
  progress(progress: { readonly step: string; readonly done: number; readonly bytes: number }): void;
}

const HEAR_EVERY_MS = 100;

/**
 * Runs the passes by which the worker process reads and writes a GPU's memory, slice by slice. Between two slices of GPU memory, the worker process
 * checks whether the agent has stopped it.
 */
class Passes {
  readonly #device: GpuDevice;
  readonly #run: OverwriteRun;
  readonly range: Allocation[] = [];
  constructor(device: GpuDevice, run: OverwriteRun) {
    this.#device = device;
    this.#run = run;
  }

  async allocate(): Promise<number> {
    return timed(async () => {
      for (const allocation of allocateAll((bytes) => this.#device.allocate(bytes))) {
        this.range.push(allocation);
        await this.#pause("allocate", bytesOf(this.range));
      }
    });
  }

  async over(step: string, work: (slice: Slice) => void): Promise<number> {
    return timed(async () => {
      for (const slice of slicesOf(this.range, this.#device.sliceBytes)) {
        work(slice);
        await this.#pause(step, slice.offset + slice.bytes);
      }
    });
  }

  async #pause(step: string, bytes: number): Promise<void> {
    this.#run.progress({ step, done: 0, bytes });
    await breathe();
    this.#run.throwIfStopped();
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return Math.round(performance.now() - began);
}

/**
 * The worker process takes all GPU memory, reads it, fills it with the ChaCha20 stream, compares it with the stream, and reports the result in its
 * commitment. After the answer to the hub's challenge, the worker process zeroes the GPU memory, reads it a last time and frees it. Whenever the
 * worker process ends, the GPU's driver takes the process's GPU memory back.
 */
export async function overwrite(
  order: OverwriteOrder,
  { device, facts, kernelsError, usedBytes, openMs }: OpenedGpu & { readonly openMs: number },
  exchange: Exchange,
  run: OverwriteRun,
): Promise<OverwriteResult> {
  const passes = new Passes(device, run);
  const allocateMs = await passes.allocate();
  if (passes.range.length === 0)
    throw new GpuFaultError("gpu_busy", `GPU ${order.uuid}: the driver gave no memory to the worker.`);
  const [given, used] = [bytesOf(passes.range), usedBytes()];
  if (used !== null && used < given)
    throw new GpuFaultError(
      "gpu_busy",
      `GPU ${order.uuid}: the driver gave ${given} bytes to the worker, and only ${used} bytes of the GPU's memory are in use.`,
    );
  const before = await scanned(passes, device, "scan_before", order.marker);
  const fillMs = await passes.over("fill", (slice) =>
    device.fill(slice.address, slice.bytes, chunkNonce(order.gpu, slice.chunk), slice.counter),
  );
  const checked = await compared(passes, device, order.gpu);
  await exchange.commit({
    uuid: facts.uuid,
    pci_address: facts.pciAddress,
    cuda_version: facts.cudaVersion,
    hip_version: facts.hipVersion,
    allocated_bytes: bytesOf(passes.range),
    total_bytes: facts.memory?.totalBytes ?? null,
    reserved_bytes: facts.memory?.reservedBytes ?? null,
    visible_bytes: facts.visibleBytes,
    kernels_error: kernelsError,
    prefill_nonzero_units: before.nonzero,
    prefill_marker_units: order.marker === null ? null : before.marked,
    mismatched_blocks: checked.blocks,
    first_mismatch: checked.first,
    open_ms: openMs,
    allocate_ms: allocateMs,
    scan_ms: before.ms,
    fill_ms: fillMs,
    check_ms: checked.ms,
  });
  // GPU memory that does not return the written bytes has already failed the check, so the hub's challenge is not needed.
  const answerMs = checked.blocks === 0 ? await answered(order, passes.range, device, exchange, run) : null;
  const release = await released(passes, device, answerMs ?? 0);
  await exchange.release(release);
  return { end: answerMs === null ? "released" : "answered", release };
}

/**
 * Fills all memory of one GPU with `marker`, a random number from the task's order, and does not zero that memory afterwards. The GPU's driver takes
 * the GPU memory back when the worker process ends. If the GPU's driver clears freed GPU memory, the next process finds no copy of the random number
 * `marker` in it.
 */
export async function mark(order: OverwriteOrder, { device }: OpenedGpu, run: OverwriteRun): Promise<OverwriteResult> {
  const passes = new Passes(device, run);
  await passes.allocate();
  await passes.over("mark", ({ address, bytes }) => device.set(address, bytes, order.marker ?? 0));
  return { end: "marked", bytes: bytesOf(passes.range) };
}

async function scanned(passes: Passes, device: GpuDevice, step: string, marker: number | null) {
  let [nonzero, marked] = [0, 0];
  const ms = await passes.over(step, ({ address, bytes }) => {
    const found = device.scan(address, bytes, marker ?? 0);
    nonzero += found.nonzero;
    marked += found.marked;
  });
  return { nonzero, marked, ms };
}

async function compared(passes: Passes, device: GpuDevice, gpu: number) {
  let blocks = 0;
  let first: number | null = null;
  const ms = await passes.over("check", (slice) => {
    const found = device.check(slice.address, slice.bytes, chunkNonce(gpu, slice.chunk), slice.counter);
    blocks += found.blocks;
    if (found.first !== null) first ??= slice.offset + found.first;
  });
  return { blocks, first: first as number | null, ms };
}

/** Returns the milliseconds that the answers to the hub's challenge took, or null if no challenge came. */
async function answered(
  order: OverwriteOrder,
  range: readonly Allocation[],
  device: GpuDevice,
  exchange: Exchange,
  run: OverwriteRun,
): Promise<number | null> {
  const until = performance.now() + order.hold_seconds * 1000;
  for (;;) {
    const challenge = await exchange.challenge();
    if (challenge?.blocks.every((block) => block < sampleBlocksIn(bytesOf(range)))) {
      const began = performance.now();
      const read = (offset: number, bytes: number) =>
        piecesAt(range, offset, bytes).map((piece) => device.read(piece.address, piece.bytes));
      await exchange.answer({
        challenge,
        answers: answersTo(challenge, { fillTaskId: order.fill_task_id, uuid: order.uuid }, read),
      });
      return Math.round(performance.now() - began);
    }
    if (challenge !== null || (await exchange.mustEnd()) || performance.now() > until) return null;
    run.progress({ step: "hold", done: 0, bytes: bytesOf(range) });
    await sleep(HEAR_EVERY_MS);
    run.throwIfStopped();
  }
}

async function released(passes: Passes, device: GpuDevice, answerMs: number): Promise<GpuRelease> {
  const zeroMs = await passes.over("zero", ({ address, bytes }) => device.set(address, bytes, 0));
  const after = await scanned(passes, device, "scan_after", null);
  for (const { address } of passes.range) device.free(address);
  return {
    zeroed_bytes: bytesOf(passes.range),
    nonzero_units: after.nonzero,
    answer_ms: answerMs,
    zero_ms: zeroMs,
    scan_ms: after.ms,
  };
}
