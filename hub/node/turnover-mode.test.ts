import { describe, expect, it } from "vitest";
import { mayGrantRoot, type TurnoverFacts, turnoverMode } from "./turnover-mode.ts";

type Policy = TurnoverFacts["policy"];

const SOFT: Policy = { turnoverMode: "soft_reset", softResetAfterRoot: false };
const SOFT_AFTER_ROOT: Policy = { turnoverMode: "soft_reset", softResetAfterRoot: true };
const AGAIN: Policy = { turnoverMode: "reimage", softResetAfterRoot: false };
const AGAIN_AFTER_ROOT: Policy = { turnoverMode: "reimage", softResetAfterRoot: true };

describe("the mode of a turnover", () => {
  it.each([
    ["maas", SOFT, false, "soft_reset"],
    ["maas", SOFT, true, "reimage"],
    ["maas", SOFT_AFTER_ROOT, false, "soft_reset"],
    ["maas", SOFT_AFTER_ROOT, true, "soft_reset"],
    ["maas", AGAIN, false, "reimage"],
    ["maas", AGAIN, true, "reimage"],
    ["maas", AGAIN_AFTER_ROOT, false, "reimage"],
    ["maas", AGAIN_AFTER_ROOT, true, "reimage"],
    ["maas", null, false, "soft_reset"],
    ["maas", null, true, "soft_reset"],
    ["manual", AGAIN, false, "soft_reset"],
    ["manual", null, true, "soft_reset"],
  ] as const)("on a host of %s with %j and root %s is %s", (onboardingMode, policy, grantsRoot, mode) => {
    expect(turnoverMode({ onboardingMode, policy, grantsRoot })).toBe(mode);
  });

  it.each([
    ["maas", SOFT, true],
    ["maas", AGAIN, true],
    ["maas", SOFT_AFTER_ROOT, true],
    ["maas", null, false],
    ["manual", SOFT, false],
    ["manual", SOFT_AFTER_ROOT, true],
    ["manual", null, false],
  ] as const)("lets a tenant have root on a host of %s with %j: %s", (onboardingMode, policy, allowed) => {
    expect(mayGrantRoot({ onboardingMode, policy })).toBe(allowed);
  });
});
