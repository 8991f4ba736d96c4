import { describe, expect, it } from "vitest";
import { type FoundDrivers, type Technique, techniqueOf } from "./technique.ts";

const EITHER = [false, true];
const found: readonly FoundDrivers[] = EITHER.flatMap((cuda) =>
  EITHER.flatMap((hip) => EITHER.map((renderNode) => ({ cuda, hip, renderNode }))),
);

describe("the technique that a worker process chooses", () => {
  it("for a GPU of NVIDIA is CUDA or nothing, whatever of AMD's drivers is there", () => {
    for (const one of found) expect(techniqueOf("nvidia", one)).toBe(one.cuda ? "cuda" : "reset_only");
  });

  it.each<[boolean, boolean, Technique]>([
    [true, true, "hip"],
    [true, false, "hip"],
    [false, true, "kernel_clear"],
    [false, false, "reset_only"],
  ])("for a GPU of AMD with HIP %s and a device file %s is %s", (hip, renderNode, technique) => {
    for (const cuda of EITHER) expect(techniqueOf("amd", { cuda, hip, renderNode })).toBe(technique);
  });
});
