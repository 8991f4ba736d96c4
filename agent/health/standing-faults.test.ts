import { expect, it } from "vitest";
import { MOST_FAULTS, type StandingFault, standingFaults } from "./standing-faults.ts";

const PCI = "0000:18:00.0";
const xid = (number: number, atUs: number | null = 100, place = "0000:18:00") => ({
  text: `NVRM: Xid (PCI:${place}): ${number}, pid=1, a fault`,
  atUs,
});
const LOADED = { text: "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15", atUs: 200 };
const AMD = { text: "amdgpu 0000:05:00.0: amdgpu: GPU reset(3) failed", atUs: 100 };
const numbers = (faults: readonly StandingFault[]) => faults.map((one) => one.xid);
const reset = (atUs: number, pci = PCI) => [{ pci, atUs }];

it.each([
  ["a grave fault stands", [xid(48)], [], [48]],
  ["a tenant's fault and wear do not stand", [xid(31), xid(63)], [], []],
  ["the newest fault comes first, and each once", [xid(48), xid(95), xid(48, 150)], [], [48, 95]],
  ["AMD's faults stand", [AMD], [], [null]],
  ["a reset after the fault ends it", [xid(48)], reset(101), []],
  ["a reset before the fault does not", [xid(48)], reset(100), [48]],
  ["a reset of another GPU does not", [xid(48)], reset(101, "0000:19:00.0"), [48]],
  ["a reset names the GPU by any PCI function", [xid(48)], reset(101, "0000:18:00.1"), []],
  ["a fault without a time outlasts each reset", [xid(48, null)], reset(1e9), [48]],
  ["a fault that names no GPU outlasts each reset", [xid(48, 100, "0000:zz")], reset(101), []],
  ["a GPU off the bus needs a boot, and no reset helps", [xid(79)], reset(101), [79]],
  ["a load of the driver ends NVIDIA's faults before it", [xid(48), AMD, LOADED, xid(95, 300)], [], [95, null]],
  ["a load of the driver does not bring a GPU back to the bus", [xid(79), LOADED], [], [79]],
])("%s", (_, lines, resets, standing) => expect(numbers(standingFaults([], lines, resets))).toEqual(standing));

it("keeps the faults of earlier looks, until their GPU is reset", () => {
  const before = standingFaults([], [xid(48)], []);
  expect(numbers(standingFaults(before, [], []))).toEqual([48]);
  expect(numbers(standingFaults(before, [xid(95, 300)], reset(200)))).toEqual([95]);
  const nameless = before.map((one) => ({ ...one, pci: null }));
  expect(numbers(standingFaults(nameless, [], reset(200)))).toEqual([48]);
});

it("keeps a bounded number of faults, the newest", () => {
  const lines = Array.from({ length: 40 }, (_, n) => xid(48, n, `0000:${(n + 16).toString(16)}:00`));
  const standing = standingFaults([], lines, []);
  expect(standing).toHaveLength(MOST_FAULTS);
  expect(standing[0]?.atUs).toBe(39);
});
