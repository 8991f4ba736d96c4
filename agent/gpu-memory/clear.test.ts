import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clearSampleOf, type GpuClear, SAMPLE_BLOCK_BYTES, sampleBlocksIn } from "../../shared/gpu-memory.ts";
import { hasSpilled, liesInVram } from "./clear.ts";
import { outcomeOfClear } from "./clear-outcome.ts";
import { sampleBlocks } from "./clear-sample.ts";
import { DRM_REQUESTS, gemCreate, gemWaitIdle, ofHandle } from "./drm-requests.ts";
import { faultOfErrno } from "./drm-results.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;

describe("the requests to a DRM device file", () => {
  it("have the numbers of the kernel's public headers", () => {
    expect(DRM_REQUESTS).toEqual({
      gemCreate: 0xc0206440,
      gemMmap: 0xc0086441,
      gemWaitIdle: 0xc0106447,
      gemClose: 0x40086409,
    });
  });

  it("have the sizes that their numbers name, and the fields at their places", () => {
    const structs = { gemCreate: gemCreate(4 * GIB), gemMmap: ofHandle(9), gemWaitIdle: gemWaitIdle(9, 77n) };
    for (const [name, struct] of Object.entries(structs))
      expect(struct.length).toBe((DRM_REQUESTS[name as keyof typeof structs] >>> 16) & 0x3fff);
    const at = (place: number) => structs.gemCreate.readBigUInt64LE(place);
    expect([at(0), at(8), at(16), at(24)]).toEqual([2n ** 32n, 0n, 4n, 8n]);
    expect([structs.gemWaitIdle.readUInt32LE(0), structs.gemWaitIdle.readBigUInt64LE(8)]).toEqual([9, 77n]);
  });

  it("fail with the fault of their error number", () => {
    expect([2, 6, 12, 16, 19, 28, 5, 22, 110].map(faultOfErrno)).toEqual([
      ...["gpu_missing", "gpu_missing", "gpu_busy", "gpu_busy", "gpu_missing", "gpu_busy"],
      ...["driver_refused", "driver_refused", "driver_refused"],
    ]);
  });
});

describe("the place of a new buffer", () => {
  const before = { vram: 100 * MIB, gtt: 50 * MIB };
  it.each<[string, number, number, boolean]>([
    ["the GPU's memory", 4 * MIB, 0, true],
    ["the GPU's memory, while somebody takes a little memory of the host", 4 * MIB, 2 * MIB - 1, true],
    ["the GPU's memory, while somebody takes more of it", 6 * MIB, 0, true],
    ["the host's memory", 0, 4 * MIB, false],
    ["the GPU's memory in place of another buffer", 4 * MIB, 4 * MIB, false],
    ["the GPU's memory in place of a small buffer", 4 * MIB, 2 * MIB, false],
    ["an unknown place, because the count did not grow by so much", 4 * MIB - 1, 0, false],
  ])("is %s", (_where, vram, gtt, isInVram) => {
    const after = { vram: before.vram + vram, gtt: before.gtt + gtt };
    expect(liesInVram(4 * MIB, before, after)).toBe(isInVram);
    if (hasSpilled(before, after)) expect(isInVram).toBe(false);
  });
});

describe("the sample of cleared memory", () => {
  it("draws one block of each part of the memory, in order (generated sizes)", () => {
    const sizes = fc.integer({ min: 1, max: 96 * 1024 }).map((steps) => steps * 2 * MIB);
    fc.assert(
      fc.property(sizes, fc.func(fc.nat()), (bytes, draw) => {
        const blocks = sampleBlocks(bytes, clearSampleOf(bytes), (limit) => draw(limit) % limit);
        expect(blocks.length * SAMPLE_BLOCK_BYTES).toBe(clearSampleOf(bytes));
        const whole = sampleBlocksIn(bytes);
        const parts = blocks.map((block) => Math.ceil(((block + 1) * blocks.length) / whole) - 1);
        expect(parts).toEqual(blocks.map((_, part) => part));
        expect(blocks.every((block) => block >= 0 && block < whole)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it("is the whole of a memory of 64 MiB or less", () => {
    expect(sampleBlocks(4 * MIB, clearSampleOf(4 * MIB), () => 0)).toEqual(Array.from({ length: 64 }, (_, at) => at));
  });
});

describe("the outcome of a clear", () => {
  const clear: GpuClear = {
    uuid: "GPU-0011223344556677",
    pci_address: "0000:c1:00.0",
    cleared_bytes: 190 * GIB,
    total_bytes: 192 * GIB,
    bar_bytes: 192 * GIB,
    sampled_bytes: 64 * MIB,
    nonzero_units: 0,
    allocate_ms: 1,
    sample_ms: 1,
  };
  it.each<[Partial<GpuClear>, string | null, string]>([
    [{}, null, "a sample of 67108864 bytes was zero"],
    [{ nonzero_units: 3 }, "not_cleared", "3 units of 16 bytes"],
    [{ sampled_bytes: 0, bar_bytes: 2 ** 28 }, "bar_too_small", "can read 268435456 of"],
    [{ sampled_bytes: 0, bar_bytes: null }, "bar_too_small", "an unknown number of"],
    [{ sampled_bytes: 64 * MIB - 1 }, "bar_too_small", "nobody read"],
  ])("of %j is %s", (change, fault, says) => {
    const outcome = outcomeOfClear({ ...clear, ...change });
    expect(outcome.fault).toBe(fault);
    expect(outcome.message).toContain(says);
  });
});
