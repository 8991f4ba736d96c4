import { describe, expect, it } from "vitest";
import { MOST_GPUS } from "../../shared/gpu-memory.ts";
import { GPU_LEVELS } from "../../shared/sanitization-record.ts";
import { whyClaimImpossible } from "./gpu-claim.ts";

const VENDORS = ["nvidia", "amd", "none", null] as const;
const COUNTS = [0, 1, MOST_GPUS, MOST_GPUS + 1];
const CASES = [null, ...GPU_LEVELS].flatMap((level) =>
  VENDORS.flatMap((vendor) => COUNTS.map((gpus) => ({ level, vendor, gpus }))),
);

describe("a level of GPU memory", () => {
  it.each(CASES)("is possible or not for %j", ({ level, vendor, gpus }) => {
    const overwrites = level !== null && level !== "reset_only" && gpus > 0;
    const why = whyClaimImpossible({ level, vendor, gpus });
    if (!overwrites) expect(why).toBeNull();
    else if (vendor === "none" || vendor === null)
      expect(why).toMatch(/NVIDIA and AMD GPUs only: the SKU says (none|nothing)$/);
    else if (gpus > MOST_GPUS) expect(why).toBe("Muster overwrites at most 16 GPUs of a host: this host has 17");
    else expect(why).toBeNull();
  });
});
