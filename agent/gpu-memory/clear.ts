import { randomInt } from "node:crypto";
import { setImmediate as breathe } from "node:timers/promises";
import { ALLOCATION_STEP_BYTES, clearSampleOf, type GpuClear, SAMPLE_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import { sampleBlocks } from "./clear-sample.ts";
import type { OverwriteOrder, OverwriteResult } from "./exchange.ts";
import { GpuFaultError } from "./faults.ts";
import { countUnits } from "./host-compare.ts";
import type { OverwriteRun } from "./overwrite.ts";
import { ALLOCATION_SIZES } from "./range.ts";

/** How many bytes the amdgpu driver counts as used: in the GPU's memory, and in the host's memory that the GPU can reach (GTT). */
export interface UsedBytes {
  readonly vram: number;
  readonly gtt: number;
}

/** The calls by which a worker process gets and reads the clearing buffers of the amdgpu driver. */
export interface ClearingDriver {
  /** Creates a buffer and returns its handle, or null if the driver has no memory for the buffer. */
  create(bytes: number): number | null;
  /** Returns when the GPU has cleared the buffer of the amdgpu driver. */
  waitCleared(handle: number): void;
  /** Calls `work` with a function that reads a buffer of GPU memory through the host's processor. */
  reading(handle: number, bytes: number, work: (read: (offset: number, bytes: number) => Buffer) => void): void;
  close(handle: number): void;
  used(): UsedBytes;
}

export interface OpenedClearing {
  readonly driver: ClearingDriver;
  readonly totalBytes: number;
  /** How much of the GPU's memory the host's processor can read, or null if the amdgpu driver does not report it. */
  readonly barBytes: number | null;
}

interface ClearBuffer {
  readonly handle: number;
  readonly bytes: number;
}

/**
 * True if a new buffer lies in the GPU's own memory. If the GPU's memory is full, the amdgpu driver may put a new buffer into the host's memory, or
 * move another buffer there. A buffer that the driver puts into host memory raises the driver's count of used host memory by at least the size of the
 * agent's smallest buffer. Without a buffer that goes into host memory, the amdgpu driver's count of used host memory grows by less than the size of
 * the agent's smallest buffer.
 */
export const liesInVram = (bytes: number, before: UsedBytes, after: UsedBytes): boolean =>
  after.vram - before.vram >= bytes && !hasSpilled(before, after);

export const hasSpilled = (before: UsedBytes, after: UsedBytes): boolean =>
  after.gtt - before.gtt >= ALLOCATION_STEP_BYTES;

/**
 * The amdgpu driver clears each buffer before anybody can read it. The worker process reads a sample of the buffers and then frees all buffers. The
 * result of clearing a GPU's memory says how much memory the worker process held, and how much of it the worker process read.
 */
export async function clearMemory(
  order: OverwriteOrder,
  { driver, totalBytes, barBytes }: OpenedClearing,
  run: OverwriteRun,
): Promise<OverwriteResult> {
  const before = driver.used();
  const began = performance.now();
  const buffers: ClearBuffer[] = [];
  const pause = async (step: string) => {
    run.progress({ step, done: 0, bytes: sum(buffers) });
    await breathe();
    run.throwIfStopped();
  };
  for (const buffer of buffersOf(driver, totalBytes)) {
    buffers.push(buffer);
    await pause("allocate");
  }
  if (buffers.length === 0) throw busy(order, "the driver gave no memory to the worker.");
  for (const { handle } of buffers) {
    driver.waitCleared(handle);
    await pause("clear");
  }
  const cleared = performance.now();
  const isReadable = barBytes !== null && barBytes >= totalBytes;
  const read = { bytes: 0, nonzero: 0 };
  for (const one of isReadable ? sampled(buffers) : []) {
    const nonzero = nonzeroIn(driver, one);
    read.bytes += one.offsets.length * SAMPLE_BLOCK_BYTES;
    read.nonzero += nonzero;
    await pause("sample");
  }
  const [after, held] = [driver.used(), sum(buffers)];
  if (after.vram - before.vram < held || hasSpilled(before, after))
    throw busy(
      order,
      `the worker holds ${held} bytes, and the used memory of the GPU grew by only ${after.vram - before.vram} bytes and that of the host by ${after.gtt - before.gtt} bytes.`,
    );
  const clear: GpuClear = {
    uuid: order.uuid,
    pci_address: order.pci_address,
    cleared_bytes: held,
    total_bytes: totalBytes,
    bar_bytes: barBytes,
    sampled_bytes: read.bytes,
    nonzero_units: read.nonzero,
    allocate_ms: Math.round(cleared - began),
    sample_ms: Math.round(performance.now() - cleared),
  };
  for (const { handle } of buffers) driver.close(handle);
  return { end: "cleared", clear };
}

/**
 * The worker process creates buffers, the largest first, until the GPU's memory is full. The worker process closes a buffer that does not lie in the
 * GPU's own memory.
 */
function* buffersOf(driver: ClearingDriver, totalBytes: number): Generator<ClearBuffer> {
  const begin = driver.used();
  for (const bytes of ALLOCATION_SIZES)
    for (;;) {
      const before = driver.used();
      if (totalBytes - before.vram < bytes) break;
      const handle = driver.create(bytes);
      if (handle === null) break;
      if (liesInVram(bytes, before, driver.used())) {
        yield { handle, bytes };
        continue;
      }
      driver.close(handle);
      // If the driver has moved an older buffer into the host's memory, the GPU's memory is full.
      if (hasSpilled(begin, driver.used())) return;
      break;
    }
}

interface Sampled extends ClearBuffer {
  /** The distances in bytes from the start of the buffer to the blocks that the worker process reads. */
  readonly offsets: readonly number[];
}

/**
 * The blocks of the buffers that the worker process reads as a sample. The size of each buffer of GPU memory is a multiple of the size of a sample
 * block.
 */
function sampled(buffers: readonly ClearBuffer[]): Sampled[] {
  const places = sampleBlocks(sum(buffers), clearSampleOf(sum(buffers)), (limit) => randomInt(limit)).map(
    (block) => block * SAMPLE_BLOCK_BYTES,
  );
  let begin = 0;
  return buffers.map((buffer) => {
    const from = begin;
    begin += buffer.bytes;
    return { ...buffer, offsets: places.filter((at) => at >= from && at < begin).map((at) => at - from) };
  });
}

function nonzeroIn(driver: ClearingDriver, { handle, bytes, offsets }: Sampled): number {
  let nonzero = 0;
  if (offsets.length > 0)
    driver.reading(handle, bytes, (read) => {
      for (const offset of offsets) nonzero += countUnits(read(offset, SAMPLE_BLOCK_BYTES), 0).nonzero;
    });
  return nonzero;
}

const sum = (buffers: readonly ClearBuffer[]): number => buffers.reduce((all, { bytes }) => all + bytes, 0);

const busy = ({ uuid }: OverwriteOrder, what: string) => new GpuFaultError("gpu_busy", `GPU ${uuid}: ${what}`);
