import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { knownGpuBytes, withSizes } from "./gpu-sizes.ts";

const GIB = 2 ** 30;
const H100 = 81_559 * 2 ** 20;
const AT = "0000:3b:00.0";
const gpu = (memory_bytes: number | null, bus = AT) => ({ vendor: "NVIDIA", model: "H100", bus, memory_bytes });
const known = (...sizes: (number | null)[]) => sizes.reduce((sum, size) => withSizes(sum, [gpu(size)]), {});

describe("the known size of a GPU's memory", () => {
  it.each([
    ["nothing was reported", [], H100, null],
    ["no size was reported", [null, 0, -1, 0.5, Number.NaN], H100, null],
    ["the driver told the size", [H100], H100, H100],
    ["the host later states less", [H100, GIB], GIB, H100],
    ["only the window was seen, which is larger", [128 * GIB], H100, null],
    ["only the window was seen, and the host states less", [128 * GIB], GIB, null],
    ["the size is a power of two, and the host states it", [32 * GIB], 32 * GIB, 32 * GIB],
    ["the window was seen before the driver", [128 * GIB, H100], H100, H100],
  ])("%s", (_what, sizes, stated, bytes) => {
    expect(knownGpuBytes(known(...sizes), AT, stated)).toBe(bytes);
  });

  it.each(["3b:00.0", "0000:3B:00.0", "00000000:3b:00.0"])("is found by the address %s", (bus) => {
    expect(knownGpuBytes(withSizes({}, [gpu(H100, bus)]), AT, H100)).toBe(H100);
  });

  it.each(["", "3b:00", "0001:3b:00.0", "constructor", "3b:00.8"])("is not found by the address %j", (bus) => {
    expect(knownGpuBytes(withSizes({}, [gpu(H100, bus)]), AT, H100)).toBeNull();
    expect(knownGpuBytes(known(H100), bus, H100)).toBeNull();
  });

  it("never becomes smaller by a later inventory (generated cases)", () => {
    const size = fc.option(fc.constantFrom(1, GIB, H100, 128 * GIB, 2 * H100));
    fc.assert(
      fc.property(fc.array(size), size, fc.constantFrom(GIB, H100), (before, later, stated) => {
        const first = knownGpuBytes(known(...before), AT, stated);
        const then = knownGpuBytes(known(...before, later), AT, stated);
        if (first !== null && first !== stated) expect(then ?? 0).toBeGreaterThanOrEqual(first);
      }),
    );
  });
});
