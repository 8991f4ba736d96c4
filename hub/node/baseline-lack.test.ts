import { describe, expect, it } from "vitest";
import { lackAtTurnover, lacksNothing, toldLack } from "./baseline-lack.ts";

const SOFT = { turnoverMode: "soft_reset", softResetAfterRoot: false } as const;
const AGAIN = { turnoverMode: "reimage", softResetAfterRoot: false } as const;

describe("what a baseline lacks", () => {
  it.each([null, [], ["disks"]])("matters only to a soft reset: %j", (lack) => {
    const lackOf = (policy: typeof SOFT | typeof AGAIN, grantsRoot: boolean) =>
      lackAtTurnover({ onboardingMode: "maas", policy, grantsRoot }, lack);
    expect(lackOf(SOFT, false)).toEqual(lack);
    expect(lackOf(SOFT, true)).toEqual([]);
    expect(lackOf(AGAIN, false)).toEqual([]);
  });

  it.each([
    [null, false, "no residue baseline"],
    [[], true, null],
    [["disks"], false, "a residue baseline without disks"],
    [["a", "b", "c", "d", "e", "f", "g"], false, "a residue baseline without a, b, c, d, e and 2 more items"],
  ])("is told in words: %j", (lack, isComplete, words) => {
    expect(lacksNothing(lack)).toBe(isComplete);
    if (words !== null) expect(toldLack(lack)).toBe(words);
  });
});
