import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseWipe } from "./wipe-report.ts";

const methods = (...lines: readonly string[]) =>
  Object.fromEntries(parseWipe(lines.join("\n")).map(({ name, method }) => [name, method]));

describe("the output of MAAS's release script", () => {
  it("names the method of each listed disk", () => {
    expect(
      methods(
        "sda, sdb, nvme0n1, nvme1n1, sdc to be wiped.",
        "sda: performing secure erase process.",
        "sda: successfully securely erased.",
        "sdb: drive does not support secure erase.",
        "sdb: started zeroing.",
        "sdb: successfully zeroed.",
        "Secure erase was successful on NVMe drive nvme0n1",
        "Error with format command (1)",
        "nvme1n1: successfully zeroed (using write-zeroes).",
        "sdc: starting quick wipe.",
        "sdc: successfully quickly wiped.",
        "All disks have been successfully wiped.",
      ),
    ).toEqual({ sda: "secure", sdb: "zero", nvme0n1: "secure", nvme1n1: "write_zeroes", sdc: "quick" });
  });

  it.each([
    ["a disk without last words", ["sda to be wiped."], { sda: "none" }],
    [
      "a quick erase of which one half failed, although the script reports success",
      ["sda to be wiped.", "sda: starting quick wipe.", "sda: wipefs failed (1)", "sda: successfully quickly wiped."],
      { sda: "none" },
    ],
    ["a disk that the script does not list", ["sda to be wiped.", "sdb: successfully zeroed."], { sda: "none" }],
    ["an output without a list", ["All disks have been successfully wiped."], {}],
  ])("counts %s as not erased", (_what, lines, expected) => {
    expect(methods(...lines)).toEqual(expected);
  });

  it("property: any text is readable, and no disk is erased without its own last words", () => {
    const line = fc.oneof(
      fc.string(),
      fc.constantFrom(
        "sda, sdb to be wiped.",
        "sda: successfully zeroed.",
        "sdb: wipefs failed (2)",
        "sdb: successfully",
      ),
    );
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        for (const { name, method } of parseWipe(lines.join("\n")))
          if (method !== "none") expect(lines.join("\n")).toContain(`${name}: successfully zeroed.`);
      }),
    );
  });
});
