import { describe, expect, it } from "vitest";
import type { WipeMethod } from "../../maas/port.ts";
import { erasedDisks, nameDisks, weakerDisks } from "./erased-disks.ts";

const disk = (name: string, method: WipeMethod) => ({ name, method });
const known = (name: string, type = "physical") => ({ name, serial: `S-${name}`, type });

describe("the disks of an erase", () => {
  it("are those of MAAS's inventory and those of the script, each with its serial and method", () => {
    const wiped = [disk("sda", "secure"), disk("sdx", "quick")];
    const disks = erasedDisks(wiped, [known("sda"), known("nvme0n1"), known("bcache0", "virtual")]);
    expect(nameDisks(disks)).toBe("nvme0n1 (S-nvme0n1) not_listed, sda (S-sda) secure, sdx quick");
    expect(nameDisks(disks, 1)).toBe("nvme0n1 (S-nvme0n1) not_listed and 2 more");
  });

  it.each([
    ["secure", "secure", true],
    ["secure", "zero", false],
    ["secure", "write_zeroes", false],
    ["secure", "quick", false],
    ["secure", "none", false],
    ["quick", "secure", true],
    ["quick", "zero", true],
    ["quick", "write_zeroes", false],
    ["quick", "quick", true],
    ["quick", "none", false],
  ] as const)("%s erased by %s: enough is %s", (asked, method, enough) => {
    expect(weakerDisks(asked, erasedDisks([disk("sda", method)], [known("sda")])).length === 0).toBe(enough);
    expect(weakerDisks(asked, erasedDisks([], [known("sda")]))).toHaveLength(1);
  });
});
